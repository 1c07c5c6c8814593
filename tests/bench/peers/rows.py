#!/usr/bin/env python3
"""Measures single memory-bound kernels beside ONNX Runtime and OpenVINO on this machine.

Each case is an ONNX model of one operator (or of the operators that make one: gelu, RMS norm) with seeded values. For each number of
threads one process loads it on all sides (ours through the C interface of libhidet_runtime, inputs and outputs bound on the others) and
runs them in turns with numpy's copy and read of as many bytes, so that the bandwidth is that of the same moment. Needs: a build
(bin/hidet, lib/libhidet_runtime.so), python3 with venv and the network once, for the peers. Leaves: BUILD/peers/rows (models,
rows.json) and BUILD/peers/venv.

    rows.py [--build BUILD] [--rounds N] [--threads 1,2] [--json FILE] [CASE ...]

A CASE is as the table prints it (KIND:SIZExSIZE...), or the beginning of some; without one: all below. Goals: what is larger than the
caches 85 % of the copy's bandwidth (bytes read and written; 1xKxN and reductions 95 % of the reading), what is small 1.2 x the best
peer. Exit status: 0, or 1 where a result differs by more than 2e-4 of its scale.
"""
import argparse
import concurrent.futures
import ctypes
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

import peers

PACKAGES = ["numpy", "onnx", "onnxruntime", "openvino"]
CACHES = 40e6  # bytes: a case that moves more is a large one


# --- the cases: KIND -> (model of sizes, the sizes measured)

class Graph:
    """A graph of ONNX under construction; what it makes is called by names."""

    def __init__(self):
        self.nodes, self.inputs, self.weights, self.count = [], [], [], 0

    def input(self, name, *shape, integers=False):
        from onnx import TensorProto, helper
        kind = TensorProto.INT64 if integers else TensorProto.FLOAT
        self.inputs.append(helper.make_tensor_value_info(name, kind, list(shape)))
        return name

    def weight(self, value):
        import numpy as np
        from onnx import numpy_helper
        self.weights.append(numpy_helper.from_array(np.asarray(value), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def scalar(self, value):
        import numpy as np
        return self.weight(np.float32(value))

    def normal(self, *shape):
        import numpy as np
        return self.weight(np.random.default_rng(5).standard_normal(shape).astype(np.float32))

    def __getattr__(self, op):
        def node(*inputs, **attributes):
            from onnx import helper
            self.count += 1
            self.nodes.append(helper.make_node(op, list(inputs), [f"v{self.count}"], **attributes))
            return self.nodes[-1].output[0]
        return node

    def save(self, result, path):
        from onnx import TensorProto, helper, save
        self.nodes.append(helper.make_node("Identity", [result], ["y"]))
        graph = helper.make_graph(self.nodes, "rows", self.inputs,
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], self.weights)
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))


def softmax(g, r, n, axis=-1):
    return g.Softmax(g.input("x", r, n), axis=axis)


def layer_norm(g, r, n, residual=False):
    x = g.input("x", r, n)
    if residual:
        x = g.Add(x, g.input("z", r, n))
    return g.LayerNormalization(x, g.normal(n), g.normal(n), axis=-1, epsilon=1e-5)


def rms_norm(g, r, n):
    x = g.input("x", r, n)
    mean = g.ReduceMean(g.Pow(x, g.scalar(2)), axes=[-1], keepdims=1)
    return g.Mul(g.Mul(x, g.Reciprocal(g.Sqrt(g.Add(mean, g.scalar(1e-6))))), g.normal(n))


def gelu_erf(g, r, n):
    x = g.input("x", r, n)
    share = g.Add(g.Erf(g.Div(x, g.scalar(2 ** 0.5))), g.scalar(1))
    return g.Mul(g.Mul(x, share), g.scalar(0.5))


def gelu_tanh(g, r, n):
    x = g.input("x", r, n)
    inside = g.Mul(g.Add(x, g.Mul(g.Pow(x, g.scalar(3)), g.scalar(0.044715))), g.scalar((2 / 3.141592653589793) ** 0.5))
    return g.Mul(g.Mul(x, g.scalar(0.5)), g.Add(g.Tanh(inside), g.scalar(1)))


def transpose(order):
    return lambda g, *sizes: g.Transpose(g.input("x", *sizes), perm=order)


def reduction(op, axis):
    def make(g, r, n):
        import numpy as np
        x = g.input("x", r, n)
        if op == "ReduceSum":  # the others take an input of axes from version 18 on
            return g.ReduceSum(x, g.weight(np.array([axis], np.int64)), keepdims=0)
        return getattr(g, op)(x, keepdims=0, axes=[axis])
    return make


def part(g, r, n):
    import numpy as np
    ends = [g.weight(np.array([v], np.int64)) for v in (n // 4, n - n // 4, 1)]
    return g.Slice(g.input("x", r, n), ends[0], ends[1], ends[2])


def pool(op, kernel, stride):
    return lambda g, *sizes: getattr(g, op)(g.input("x", *sizes), kernel_shape=[kernel] * 2, strides=[stride] * 2,
                                            pads=[(kernel - stride + 1) // 2] * 4)


def resize(mode):
    def make(g, *sizes):
        import numpy as np
        scales = g.weight(np.array([1, 1, 2, 2], np.float32))
        how = {"nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"} if mode == "nearest" else {}
        return g.Resize(g.input("x", *sizes), "", scales, mode=mode, **how)
    return make


def conv_transpose(g, b, c, h, w, n, r):
    return g.ConvTranspose(g.input("x", b, c, h, w), g.normal(c, n, r, r), g.normal(n), strides=[2, 2], pads=[(r - 2) // 2] * 4)


def group_norm(g, b, c, h, w, groups):
    """As exporters before version 18 write it."""
    import numpy as np
    x = g.Reshape(g.input("x", b, c, h, w), g.weight(np.array([0, groups, -1], np.int64)))
    ones = g.weight(np.ones(groups, np.float32))
    y = g.InstanceNormalization(x, ones, g.weight(np.zeros(groups, np.float32)), epsilon=1e-5)
    back = g.Reshape(y, g.weight(np.array([b, c, h, w], np.int64)))
    return g.Add(g.Mul(back, g.normal(c, 1, 1)), g.normal(c, 1, 1))


MATRICES = ["16384x1024", "128x768"]
IMAGES = ["16x64x112x112", "1x64x56x56", "1x256x14x14"]
KINDS = {
    "softmax": (softmax, ["262144x64", "131072x128", "16384x1000", "4096x4096", "512x64", "1536x128", "64x1000", "16x4096"]),
    "softmax_first": (lambda g, r, n: softmax(g, r, n, 0), ["1000x16384", "64x512"]),
    "layer_norm": (layer_norm, ["16384x768", "4096x4096", "128x768", "16x4096"]),
    "layer_norm_residual": (lambda g, r, n: layer_norm(g, r, n, True), ["16384x768", "128x768"]),
    "rms_norm": (rms_norm, ["16384x768", "4096x4096", "128x768", "1x4096"]),
    "gelu_erf": (gelu_erf, ["4096x3072", "128x3072"]),
    "gelu_tanh": (gelu_tanh, ["4096x3072", "128x3072"]),
    "bias_relu": (lambda g, r, n: g.Relu(g.Add(g.input("x", r, n), g.normal(n))), MATRICES),
    "residual": (lambda g, r, n: g.Add(g.input("x", r, n), g.input("z", r, n)), MATRICES),
    "scale_rows": (lambda g, r, n: g.Mul(g.input("x", r, n), g.input("z", r, 1)), MATRICES),
    "scale_columns": (lambda g, r, n: g.Mul(g.input("x", r, n), g.input("z", n)), MATRICES),
    "transpose_10": (transpose([1, 0]), ["4096x4096", "1000x16001", "768x768"]),
    "transpose_0213": (transpose([0, 2, 1, 3]), ["32x512x16x64", "1x128x12x64"]),
    "transpose_0231": (transpose([0, 2, 3, 1]), ["16x256x64x64", "1x64x56x56", "1x3x224x224"]),
    "transpose_0312": (transpose([0, 3, 1, 2]), ["16x64x64x256", "1x56x56x64"]),
    "transpose_021": (transpose([0, 2, 1]), ["512x256x128", "12x128x64"]),
    "concat_0": (lambda g, r, n: g.Concat(g.input("x", r, n), g.input("z", r, n), axis=0), ["8192x1024", "64x768"]),
    "concat_1": (lambda g, r, n: g.Concat(g.input("x", r, n), g.input("z", r, n), axis=1), ["8192x1024", "64x768", "2048x33"]),
    "slice": (part, ["16384x2048", "128x1536"]),
    "sum_last": (reduction("ReduceSum", -1), ["16384x1024", "128x768"]),
    "mean_last": (reduction("ReduceMean", -1), ["16384x1024", "128x768"]),
    "max_last": (reduction("ReduceMax", -1), ["16384x1024", "128x768"]),
    "sum_first": (reduction("ReduceSum", 0), ["16384x1024", "128x768"]),
    "mean_first": (reduction("ReduceMean", 0), ["16384x1024", "128x768"]),
    "max_first": (reduction("ReduceMax", 0), ["16384x1024", "128x768"]),
    "product": (lambda g, m, k, n: g.MatMul(g.input("x", m, k), g.normal(k, n)),
                ["1x4096x4096", "1x4096x11008", "1x768x3072", "1x3072x768", "1x256x256", "1x1024x1024"]),
    "max_pool": (pool("MaxPool", 3, 2), IMAGES),
    "max_pool_2": (pool("MaxPool", 2, 2), IMAGES),
    "average_pool": (pool("AveragePool", 3, 1), IMAGES),
    "global_average": (lambda g, *sizes: g.GlobalAveragePool(g.input("x", *sizes)), IMAGES + ["1x2048x7x7"]),
    "resize_nearest": (resize("nearest"), ["16x64x56x56", "1x64x28x28"]),
    "resize_linear": (resize("linear"), ["16x64x56x56", "1x64x28x28"]),
    "conv_transpose": (conv_transpose, ["1x64x32x32x32x2", "1x128x32x32x64x4"]),
    "instance_norm": (lambda g, b, c, h, w: g.InstanceNormalization(g.input("x", b, c, h, w), g.normal(c), g.normal(c)), IMAGES),
    "group_norm": (group_norm, ["16x64x112x112x32", "1x64x56x56x32", "1x256x14x14x32"]),
    "gather": (lambda g, v, n, r: g.Gather(g.normal(v, n), g.input("x", r, integers=True), axis=0),
               ["30522x768x16384", "30522x768x128"]),
}
READS = ("product", "sum_", "mean_", "max_")  # measured beside the reading of as many bytes


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cases", nargs="*", metavar="CASE")
    p.add_argument("--build", type=pathlib.Path, default=peers.ROOT / "build")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", default="1,2")
    p.add_argument("--json", type=pathlib.Path, help="default BUILD/peers/rows/rows.json")
    p.add_argument("--one", type=int, metavar="THREADS", help=argparse.SUPPRESS)
    return p.parse_args()


def cases_of(wanted):
    all_cases = [f"{kind}:{sizes}" for kind, (_, list_) in KINDS.items() for sizes in list_]
    for text in wanted:
        if re.fullmatch(r"\w+:\d+(x\d+)*", text) and text.split(":")[0] in KINDS and not any(c.startswith(text) for c in all_cases):
            all_cases.append(text)  # sizes of one's own
    chosen = [c for c in all_cases if not wanted or any(c.startswith(text) for text in wanted)]
    if not chosen:
        raise SystemExit(f"no case begins with {' or '.join(wanted)}; kinds: {', '.join(KINDS)}")
    return chosen


# --- the sides

class Ours:
    """A .hidet file through the C interface. HIDET_NUM_THREADS is set before the library is opened."""
    name = "hidet"
    library = None

    def __init__(self, library, path, feed):
        if Ours.library is None:
            Ours.library = ctypes.CDLL(str(library))
            Ours.library.hidet_last_error.restype = ctypes.c_char_p
        self.model, self.out, self.feed = ctypes.c_void_p(), ctypes.c_void_p(), feed
        self.call("load_model", str(path).encode(), None, ctypes.byref(self.model))
        tensors = []
        for value in feed.values():  # in the model's order
            t = ctypes.c_void_p()
            self.call("tensor_from_blob", value.ctypes.data_as(ctypes.c_void_p), (ctypes.c_int64 * 16)(*value.shape),
                      value.ndim, 4 if value.dtype.kind == "i" else 11, ctypes.c_int64(0), ctypes.byref(t))
            tensors.append(t)
        self.tensors, self.count = (ctypes.c_void_p * len(tensors))(*tensors), ctypes.c_size_t(len(tensors))
        self.one, self.to = ctypes.c_size_t(1), ctypes.byref(self.out)
        self.go, self.release = self.library.hidet_run, self.library.hidet_tensor_release

    def call(self, name, *args):
        if getattr(self.library, "hidet_" + name)(*args):
            raise RuntimeError(self.library.hidet_last_error().decode())

    def run(self):
        if self.go(self.model, self.tensors, self.count, self.to, self.one):
            raise RuntimeError(self.library.hidet_last_error().decode())
        self.release(self.out)

    def result(self, like):
        self.call("run", self.model, self.tensors, self.count, self.to, self.one)
        self.call("tensor_copy_out", self.out, like.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(like.nbytes))
        self.release(self.out)
        return like

    def close(self):
        for t in self.tensors:
            self.release(ctypes.c_void_p(t))
        self.library.hidet_model_release(self.model)


class OnnxRuntime(peers.OnnxRuntime):
    def __init__(self, onnx, threads, feed):
        super().__init__(onnx, threads, feed)
        want = self.session.run(None, feed)[0]
        self.want = want.copy()
        self.binding = self.session.io_binding()
        for name, value in feed.items():
            self.binding.bind_cpu_input(name, value)
        self.binding.bind_output("y", "cpu", 0, want.dtype, want.shape, want.ctypes.data)
        self.out = want

    def run(self):
        self.session.run_with_iobinding(self.binding)


class OpenVino(peers.OpenVino):
    def __init__(self, onnx, threads, feed):
        import openvino as ov
        super().__init__(onnx, threads, feed)
        for name, value in feed.items():
            self.request.set_tensor(name, ov.Tensor(value, shared_memory=True))

    def run(self):
        self.request.infer()


class Bandwidth:
    """numpy's copy (x + 1, or a plain copy, whichever is faster now) or reading of `count` floats, in parts on `threads` threads."""

    def __init__(self, threads, count):
        import numpy as np
        self.pool = concurrent.futures.ThreadPoolExecutor(threads)
        self.x, self.y = np.ones(count, np.float32), np.zeros(count, np.float32)
        self.parts = [slice(i * count // threads, (i + 1) * count // threads) for i in range(threads)]

    def seconds(self, one, runs):
        times = []
        for _ in range(runs):
            start = time.perf_counter()
            list(self.pool.map(one, self.parts))
            times.append(time.perf_counter() - start)
        return statistics.median(times)

    def copy(self, runs=3):
        import numpy as np
        ways = [lambda s: np.add(self.x[s], 1, out=self.y[s]), lambda s: np.copyto(self.y[s], self.x[s])]
        return 8e-9 * len(self.x) / min(self.seconds(w, runs) for w in ways)

    def read(self, runs=3):
        import numpy as np
        return 4e-9 * len(self.x) / self.seconds(lambda s: np.dot(self.x[s], self.x[s]), runs)


# --- the table

def feed_of(path):
    """Values for the inputs; integers are rows of the gather's table."""
    import numpy as np
    import onnx
    model = onnx.load(str(path))
    generator = np.random.default_rng(7)
    feed = {}
    for i in model.graph.input:
        shape = [d.dim_value for d in i.type.tensor_type.shape.dim]
        if i.type.tensor_type.elem_type == onnx.TensorProto.INT64:
            feed[i.name] = generator.integers(0, model.graph.initializer[0].dims[0], shape)
        else:
            feed[i.name] = generator.standard_normal(shape, np.float32)
    return feed


def moved_bytes(case, feed, result):
    """Read and written at least; of a table only the rows that are taken."""
    kind, _, sizes = case.partition(":")
    read = sum(v.nbytes for v in feed.values())
    if kind == "gather":
        read += result.nbytes
    if kind == "slice":
        read = result.nbytes
    if kind == "product":
        _, k, n = (int(s) for s in sizes.split("x"))
        read += 4 * k * n
    return read + result.nbytes


def median_ms(side, runs):
    times = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        side.run()
        times.append(time.perf_counter() - start)
    time.sleep(0.001)  # the others' workers stop spinning
    return 1e3 * statistics.median(times[1:])


def measure(case, options, threads, folder, bandwidth):
    import numpy as np
    path = folder / f"{case.replace(':', '_')}.onnx"
    feed = feed_of(path)
    theirs = [OnnxRuntime(path, threads, feed), OpenVino(path, threads, feed)]
    want = theirs[0].want
    ours = Ours(options.build / "lib" / "libhidet_runtime.so", path.with_suffix(".hidet"), feed)
    difference = float(np.abs(ours.result(np.empty_like(want)) - want).max() / max(np.abs(want).max(), 1e-30))
    sides = [ours, *theirs]
    bytes_ = moved_bytes(case, feed, want)
    large, reads = bytes_ > CACHES, case.startswith(READS)
    runs = max(3, min(1000, int(40 / median_ms(theirs[0], 2))))
    rounds, limits = [], []
    for _ in range(options.rounds):
        rounds.append([median_ms(s, runs) for s in sides])
        if large:
            limits.append(bandwidth.read() if reads else bandwidth.copy())
    ours.close()
    times = [statistics.median(r[i] for r in rounds) for i in range(len(sides))]
    best = min(times[1:])
    row = {"case": case, "threads": threads, "large": large, "bytes": bytes_, "difference": difference,
           **{f"{s.name}_ms": t for s, t in zip(sides, times)}, "gbps": bytes_ / times[0] * 1e-6, "ratio": best / times[0]}
    if large:
        row["limit_gbps"] = statistics.median(limits)
        row["share"] = row["gbps"] / row["limit_gbps"]
    goal = row["share"] >= (0.95 if reads else 0.85) if large else row["ratio"] >= 1.2
    share = f"{row['share']:5.0%} of {row['limit_gbps']:4.1f}" if large else " " * 13
    print(f"{case:32} {threads:7} {times[0]:9.4f} {times[1]:9.4f} {times[2]:9.4f} {row['ratio']:6.2f} {row['gbps']:6.1f} {share}"
          f"{'' if goal else '  below'}{'' if difference <= peers.TOLERANCE else '  WRONG'}", flush=True)
    return row


def run_one(options, cases, folder):
    """All cases with one number of threads, in this process."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:options.one])
    bandwidth = Bandwidth(options.one, 1 << 24)
    rows = [measure(c, options, options.one, folder, bandwidth) for c in cases]
    (folder / f"rows.{options.one}.json").write_text(json.dumps(rows))


def main():
    options = arguments()
    options.build = options.build.resolve()
    folder = options.build / "peers" / "rows"
    folder.mkdir(parents=True, exist_ok=True)
    peers.enter_own_python(options.build / "peers", PACKAGES)
    cases = cases_of(options.cases)
    if options.one:
        return run_one(options, cases, folder)
    hidet = options.build / "bin" / "hidet"
    for case in cases:
        path = folder / f"{case.replace(':', '_')}.onnx"
        kind, sizes = case.split(":")
        if not path.exists():
            graph = Graph()
            graph.save(KINDS[kind][0](graph, *(int(n) for n in sizes.split("x"))), path)
        made = path.with_suffix(".hidet")
        if not made.exists() or made.stat().st_mtime < max(hidet.stat().st_mtime, path.stat().st_mtime):
            subprocess.run([hidet, "compile", path, "-o", made, "--target", "cpu:native", "-q"], check=True)
    print("medians in ms; ratio: best peer / hidet; share: of the copy's bandwidth (of the reading's: products and reductions)")
    print(f"{'case':32} threads     hidet  ONNX Run.  OpenVINO  ratio   GB/s  share")
    rows = []
    for threads in options.threads.split(","):
        environment = dict(os.environ, HIDET_NUM_THREADS=threads, OPENBLAS_NUM_THREADS="1")
        subprocess.run([sys.executable, __file__, *options.cases, "--build", options.build, "--rounds", str(options.rounds),
                        "--one", threads], env=environment, check=True)
        rows += json.loads((folder / f"rows.{threads}.json").read_text())
    small = [r for r in rows if not r["large"]]
    print(f"geometric mean of the ratios: large {peers.mean_ratio([r for r in rows if r['large']]):.2f}, small {peers.mean_ratio(small):.2f}")
    (options.json or folder / "rows.json").write_text(json.dumps(rows, indent=1))
    return int(any(not r["difference"] <= peers.TOLERANCE for r in rows))


if __name__ == "__main__":
    sys.exit(main())
