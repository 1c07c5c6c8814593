#!/usr/bin/env python3
"""Measures products of matrices and attention beside the best libraries on this machine.

Each case is an ONNX model of one operator (or the operators of attention) with seeded weights; `hidet bench`, ONNX Runtime and
OpenVINO run it in turns (rounds) as peers.py does, and for products the BLAS functions of MKL, oneDNN and OpenBLAS run the
same sizes. Shares are of the FMA peak (or read bandwidth, for one row) that `roofline_bench` measures in the same run.
Needs: a build (bin/hidet, bin/roofline_bench), python3 with venv and the network once, for the peers. Leaves: BUILD/peers
(a Python of its own, models, products.json).

    products.py [--build BUILD] [--rounds N] [--threads 1,2] [--json FILE] [CASE ...]

A CASE is MxKxN (a product with a weight), MxKxN+ (both sides are inputs), attention:HEADSxSEQxSIZE[:causal]; without one, all of
docs/performance.md. Exit status: 0, or 1 where a result differs by more than 2e-4 of its scale.
"""
import argparse
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

PRODUCTS = ["256x256x256", "512x512x512", "1024x1024x1024", "2048x2048x2048", "128x768x3072", "128x3072x768",
            "197x768x768", "1000x1000x1000", "777x1031x519"]
ROWS = ["1x768x3072", "1x4096x4096", "1x4096x11008"]
ATTENTION = [f"attention:12x{n}x64{causal}" for n in (128, 197, 512, 1024, 2048) for causal in ("", ":causal")]
PACKAGES = ["numpy", "onnx", "onnxruntime", "openvino", "mkl", "onednn", "scipy-openblas32"]


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cases", nargs="*", metavar="CASE")
    p.add_argument("--build", type=pathlib.Path, default=peers.ROOT / "build")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", default="1,2")
    p.add_argument("--json", type=pathlib.Path, help="default BUILD/peers/products.json")
    p.add_argument("--blas", nargs=5, metavar=("LIBRARY", "M", "K", "N", "RUNS"), help=argparse.SUPPRESS)
    return p.parse_args()


# --- the BLAS functions, each in a process of its own, so that their pools do not meet

def library(name):
    """The shared library of a BLAS and its product of row-major matrices: call(m, n, k, a, b, c)."""
    if name == "openblas":
        import scipy_openblas32
        lib = ctypes.CDLL(str(pathlib.Path(scipy_openblas32.get_lib_dir()) / "libscipy_openblas.so"))
        product = lib.scipy_cblas_sgemm
    else:
        folder = pathlib.Path(sys.prefix) / "lib"
        lib = ctypes.CDLL(str(folder / {"mkl": "libmkl_rt.so.3", "onednn": "libdnnl.so.3"}[name]))
        product = lib.cblas_sgemm if name == "mkl" else lib.dnnl_sgemm
    one, zero = ctypes.c_float(1), ctypes.c_float(0)
    if name == "onednn":
        size = ctypes.c_int64
        n_ = ctypes.c_char(b"N")
        return lambda m, n, k, a, b, c: product(n_, n_, size(m), size(n), size(k), one, a, size(k), b, size(n), zero, c, size(n))
    return lambda m, n, k, a, b, c: product(101, 111, 111, m, n, k, one, a, k, b, n, zero, c, n)


def run_blas(name, m, k, n, runs):
    """Prints the median and the least time of a product in ms, and its largest relative difference from numpy's in f64."""
    import numpy as np
    generator = np.random.default_rng(3)
    a, b = (generator.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n)))
    c = np.zeros((m, n), np.float32)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:int(os.environ["OMP_NUM_THREADS"])])
    call = library(name)
    pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (a, b, c)]
    times = []
    for _ in range(runs + 2):
        start = time.perf_counter()
        call(m, n, k, *pointers)
        times.append((time.perf_counter() - start) * 1e3)
    want = a.astype(np.float64) @ b.astype(np.float64)
    print(statistics.median(times[2:]), min(times[2:]), np.abs(c - want).max() / np.abs(want).max())


def blas_time(name, sizes, threads, runs):
    environment = dict(os.environ, LD_LIBRARY_PATH=str(pathlib.Path(sys.prefix) / "lib"),  # where the wheels' libraries lie
                       **{f"{v}_NUM_THREADS": str(threads) for v in ("OMP", "MKL", "OPENBLAS")})
    words = subprocess.run([sys.executable, __file__, "--blas", name, *map(str, sizes), str(runs)], env=environment,
                           check=True, capture_output=True, text=True).stdout.split()
    if not float(words[2]) < 1e-4:
        raise RuntimeError(f"{name} gives a wrong product of {sizes}: difference {words[2]}")
    return float(words[0]), float(words[1])


# --- the models

def product_model(m, k, n, both):
    from onnx import TensorProto, helper, numpy_helper
    import numpy as np
    value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    weight = numpy_helper.from_array(np.random.default_rng(5).standard_normal((k, n)).astype(np.float32), "w")
    inputs = [value("x", [m, k])] + ([value("w", [k, n])] if both else [])
    return helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "product", inputs,
                             [value("y", [m, n])], [] if both else [weight])


def attention_model(heads, seq, size, causal):
    from onnx import TensorProto, helper, numpy_helper
    import numpy as np
    value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    shape = [1, heads, seq, size]
    weights = [numpy_helper.from_array(np.float32(size ** -0.5), "scale")]
    nodes = [helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
             helper.make_node("MatMul", ["q", "kt"], ["s"]), helper.make_node("Mul", ["s", "scale"], ["scaled"])]
    if causal:
        mask = np.triu(np.full((seq, seq), -np.inf, np.float32), 1)
        weights.append(numpy_helper.from_array(mask[None, None], "mask"))
        nodes.append(helper.make_node("Add", ["scaled", "mask"], ["masked"]))
    nodes += [helper.make_node("Softmax", ["masked" if causal else "scaled"], ["p"], axis=-1),
              helper.make_node("MatMul", ["p", "v"], ["y"])]
    return helper.make_graph(nodes, "attention", [value(n, shape) for n in "qkv"], [value("y", shape)], weights)


class Case:
    """One case: its model as a file, its sizes, what it must do at least."""

    def __init__(self, text, folder):
        import onnx
        self.name = text
        self.sizes = []
        product = re.fullmatch(r"(\d+)x(\d+)x(\d+)(\+?)", text)
        attention = re.fullmatch(r"attention:(\d+)x(\d+)x(\d+)(:causal)?", text)
        if product:
            self.sizes = [int(n) for n in product.groups()[:3]]
            graph = product_model(*self.sizes, product[4] == "+")
            m, k, n = self.sizes
            self.flops, self.bytes = 2 * m * k * n, 4 * k * n
        elif attention:
            heads, seq, size = (int(n) for n in attention.groups()[:3])
            graph = attention_model(heads, seq, size, bool(attention[4]))
            self.flops, self.bytes = 4 * heads * seq * seq * size, 0
        else:
            raise SystemExit(f"'{text}' is no case: MxKxN, MxKxN+ or attention:HEADSxSEQxSIZE[:causal]")
        path = folder / (re.sub(r"\W", "_", text) + ".onnx")
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)
        self.path = path


def rooflines(build):
    """{threads: (GFLOP/s, read GB/s)} as roofline_bench prints them."""
    lines = subprocess.run([build / "bin" / "roofline_bench"], check=True, capture_output=True, text=True).stdout.splitlines()
    return {int(n): (float(flops), float(read)) for n, flops, read, _ in (line.split() for line in lines[2:])}


def measure(case, model, options, threads):
    """Rounds of all sides in turn: {side: (median of medians, least)} in ms."""
    sides = {"hidet": lambda runs: model.ours(threads, runs)}
    for kind in peers.PEERS:
        peer = kind(model.onnx, threads, model.feed)
        sides[kind.name] = lambda runs, peer=peer: model.theirs(peer, runs)
    for name in ("mkl", "onednn", "openblas") if case.sizes else ():
        sides[name] = lambda runs, name=name: blas_time(name, case.sizes, threads, runs)
    runs = max(5, min(500, int(100 / sides["onnxruntime"](2)[0])))
    times = [{name: side(runs) for name, side in sides.items()} for _ in range(options.rounds)]
    return {name: (statistics.median(t[name][0] for t in times), min(t[name][1] for t in times)) for name in sides}


def main():
    options = arguments()
    if options.blas:
        return run_blas(options.blas[0], *map(int, options.blas[1:]))
    options.build = options.build.resolve()
    folder = options.build / "peers"
    folder.mkdir(parents=True, exist_ok=True)
    peers.enter_own_python(folder, PACKAGES)
    cases = [Case(text, folder) for text in options.cases or PRODUCTS + ROWS + ATTENTION]
    options.models, options.fixed = folder, False
    rows, worst = [], 0.0
    limits = rooflines(options.build)
    print("median ms; share: of the FMA peak, for one row of the read bandwidth; ratio: best peer / hidet")
    for case in cases:
        model = peers.Case(case.path.stem, options, folder)
        difference = model.difference()
        worst = max(worst, difference)
        for threads in model.threads:
            gflops, read = limits[threads]
            times = measure(case, model, options, threads)
            ours = times["hidet"]
            best = min((t[0], name) for name, t in times.items() if name != "hidet")
            one_row = case.sizes and case.sizes[0] == 1
            share = case.bytes / ours[0] / 1e6 / read if one_row else case.flops / ours[0] / 1e6 / gflops
            rows.append({"case": case.name, "threads": threads, "share": share, "ratio": best[0] / ours[0], "best": best[1],
                         "difference": difference, "gflops_peak": gflops, "read_gbps": read,
                         "times": {name: {"median_ms": t[0], "min_ms": t[1]} for name, t in times.items()}})
            print(f"{case.name:28} {threads:2}  " + "  ".join(f"{name} {t[0]:.3f}" for name, t in times.items()) +
                  f"  share {share:4.0%}  ratio {best[0] / ours[0]:.2f} ({best[1]})", flush=True)
    print(f"geometric mean of the ratios: {peers.mean_ratio(rows):.2f}; largest difference {worst:.1e}")
    (options.json or folder / "products.json").write_text(json.dumps(rows, indent=1))
    return int(not worst <= peers.TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
