#!/usr/bin/env python3
"""Compares `hidet run` with ONNX Runtime on one model, at several sizes.

    compare_ort.py HIDET MODEL.onnx [FILE.hidet] [--sizes seq=1 seq=7,batch=2 ...] [--high NAME=N ...]

Every output must lie within --tolerance (default 2e-4; 1e-2 where the model has f16 values) of the
output's largest magnitude. Float inputs are normal; integer inputs are drawn below --high (default
2; an input not named takes 2). FILE.hidet is what to run; without it the model itself is compiled in
memory, once for each size. Needs numpy, onnx and onnxruntime. Exit status 1 where something differs.
"""
import argparse, os, subprocess, sys, tempfile
import numpy as np
import onnx
import onnxruntime


def sizes_of(text: str) -> dict[str, int]:
    return {k: int(v) for k, v in (pair.split("=") for pair in text.split(",") if pair)}


def make_inputs(graph, sizes: dict[str, int], high: dict[str, int], seed: int):
    rng = np.random.default_rng(seed)
    weights = {t.name for t in graph.initializer}
    made = {}
    for value in graph.input:
        if value.name in weights:
            continue
        kind = value.type.tensor_type
        shape = [sizes.get(d.dim_param, 1) if d.dim_param else d.dim_value for d in kind.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        if np.issubdtype(dtype, np.floating):
            made[value.name] = rng.standard_normal(shape).astype(dtype)
        else:
            made[value.name] = rng.integers(0, high.get(value.name, 2), shape).astype(dtype)
    return made


def outputs_of(binary: str, model: str, inputs, names, threads: int):
    with tempfile.TemporaryDirectory() as folder:
        command = [binary, "run", model, "--output-dir", os.path.join(folder, "out"), "-q"]
        command += ["--threads", str(threads)]
        for i, (name, value) in enumerate(inputs.items()):
            path = os.path.join(folder, f"input{i}.npy")
            np.save(path, value)
            command += ["--input", f"{name}=@{path}"]
        os.mkdir(os.path.join(folder, "out"))
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return [np.load(os.path.join(folder, "out", f"{name}.npy")) for name in names]


def difference(got, want) -> float:
    """The largest difference as a part of the expected output's scale; inf where it cannot be said."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return float("inf")
    if want.size == 0:
        return 0.0
    got, want = got.astype(np.float64), want.astype(np.float64)
    if not np.array_equal(np.isfinite(got), np.isfinite(want)):
        return float("inf")
    fine = np.isfinite(want)
    scale = np.abs(want[fine]).max(initial=0.0)
    worst = np.abs(got[fine] - want[fine]).max(initial=0.0)
    return 0.0 if worst == 0 else float(worst / scale) if scale else float("inf")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("hidet")
    parser.add_argument("model")
    parser.add_argument("file", nargs="?")
    parser.add_argument("--sizes", nargs="*", default=[""], help="one text a run: seq=7,batch=2")
    parser.add_argument("--high", nargs="*", default=[], help="NAME=N: integers of input NAME lie below N")
    parser.add_argument("--tolerance", type=float)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()

    graph = onnx.load(args.model, load_external_data=False).graph
    halves = any(t.data_type == onnx.TensorProto.FLOAT16 for t in graph.initializer)
    tolerance = args.tolerance or (1e-2 if halves else 2e-4)
    session = onnxruntime.InferenceSession(args.model, providers=["CPUExecutionProvider"])
    names = [o.name for o in graph.output]
    failed = False
    for number, text in enumerate(args.sizes):
        inputs = make_inputs(graph, sizes_of(text), sizes_of(",".join(args.high)), 17 + number)
        want = session.run(names, inputs)
        got = outputs_of(args.hidet, args.file or args.model, inputs, names, args.threads)
        for name, g, w in zip(names, got, want):
            worst = difference(g, w)
            fine = worst <= tolerance
            failed |= not fine
            print(f"{'ok  ' if fine else 'FAIL'} {args.model} [{text}] {name}: {list(w.shape)}"
                  f" got {list(g.shape)}, differs by {worst:.2e} of the scale")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
