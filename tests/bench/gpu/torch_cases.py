#!/usr/bin/env python3
"""The cases of gpu_bench with PyTorch, in f32 without TF32: what its libraries reach on the same GPU."""
import torch
import torch.nn.functional as F

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.benchmark = True


def median_ms(call) -> float:
    """Milliseconds of one call, timed with events in batches."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def batch(n: int) -> float:
        start.record()
        for _ in range(n):
            call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / n

    batch(10)
    n = max(1, min(200, int(20 / batch(3))))
    return sorted(batch(n) for _ in range(9))[4]


def report(name: str, call, data: int = 0, flops: float = 0) -> None:
    ms = median_ms(call)
    rate = f"{flops / ms * 1e-9:8.2f} TFLOP/s" if flops else f"{data / ms * 1e-6:8.0f} GB/s"
    print(f"{name:28} {ms:9.4f} ms {rate}", flush=True)


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda")


def rows() -> None:
    for m, n in (16384, 4096), (65536, 1000), (524288, 128), (2048, 32768):
        x = random(m, n)
        report(f"softmax_{m}x{n}", lambda: torch.softmax(x, -1), 8 * m * n)
    for m, n in (16384, 4096), (65536, 768):
        x, w, b = random(m, n), random(n), random(n)
        report(f"layer_norm_{m}x{n}", lambda: F.layer_norm(x, (n,), w, b), 8 * m * n)


def products() -> None:
    for m, n, k in ((1024,) * 3, (2048,) * 3, (4096,) * 3, (1000, 1003, 999), (128, 3072, 768), (1, 3072, 768)):
        a, b = random(m, k), random(k, n)
        report(f"matmul_{m}x{n}x{k}", lambda: a @ b, flops=2.0 * m * n * k)
    a, b = random(96, 128, 64), random(96, 64, 128)
    report("matmul_96x128x128x64", lambda: a @ b, flops=2.0 * 96 * 128 * 128 * 64)


def convolutions() -> None:
    for batch, c, size, out, kernel, stride in ((1, 64, 56, 64, 3, 1), (1, 256, 56, 64, 1, 1), (1, 256, 14, 256, 3, 1),
                                                (1, 3, 224, 64, 7, 2), (16, 128, 28, 128, 3, 1)):
        x, w = random(batch, c, size, size), random(out, c, kernel, kernel)
        to = (size + 2 * (kernel // 2) - kernel) // stride + 1
        report(f"conv_{batch}x{c}x{size}x{out}x{kernel}x{stride}",
               lambda: F.conv2d(x, w, stride=stride, padding=kernel // 2),
               flops=2.0 * batch * out * to * to * c * kernel * kernel)


if __name__ == "__main__":
    x = random(256 << 20)
    y = torch.empty_like(x)
    report("copy", lambda: y.copy_(x), 8 << 28)
    rows()
    products()
    convolutions()
