#!/usr/bin/env python3
"""Measures the memory of models beside ONNX Runtime's on this machine.

Each side loads a model and runs it once in a fresh process on one thread: ours a .hidet file through the C interface of
libhidet_runtime (no compiler), ONNX Runtime the .onnx file. Printed are the peak of resident memory (VmHWM) and what is resident
behind the run, both with the process itself (Python; ONNX Runtime's has numpy besides), and for ours what came since before the load
beside the code of shared libraries, with its limit: the file and 1.2 x the planned memory without weights. Needs: a build (bin/hidet, lib/libhidet_runtime.so), the filled models
(tests/models/fill_weights.py), python3 with venv and the network once, for the peer. Leaves: BUILD/peers (compiled models, memory.json).

    memory.py [--build BUILD] [--models DIR] [--json FILE] [CASE ...]

A CASE is as in peers.py; without one: each f32 model of tests/models at one size. Exit status: 0.
"""
import argparse
import ctypes
import json
import os
import pathlib
import re
import subprocess
import sys

import peers

CASES = ["resnet50@x:1x3x224x224", "mobilenet_v2@x:1x3x224x224", "bert_base@input_ids:1x128,attention_mask:1x128", "gpt2", "vit_b_16",
         "unet_small@x:1x4x64x64", "lstm_tagger@x:1x50x64", "llama_decode", "llama_prefill@input_ids:1x128"]
MB = 1e6


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cases", nargs="*", metavar="CASE")
    p.add_argument("--build", type=pathlib.Path, default=peers.ROOT / "build")
    p.add_argument("--models", type=pathlib.Path, help="folder of the .onnx files; default BUILD/models")
    p.add_argument("--json", type=pathlib.Path, help="default BUILD/peers/memory.json")
    p.add_argument("--one", nargs=3, metavar=("SIDE", "FILE", "INPUTS"), help=argparse.SUPPRESS)
    return p.parse_args()


def resident(field):
    """A line of /proc/self/status in bytes: VmRSS now, VmHWM at most."""
    for line in open("/proc/self/status", encoding="ascii"):
        if line.startswith(field + ":"):
            return 1024 * int(line.split()[1])
    raise RuntimeError(f"no {field}")


def resident_data():
    """All that is resident but the pages of shared libraries, in bytes."""
    total, counts = 0, False
    for line in open("/proc/self/smaps", encoding="ascii"):
        words = line.split()
        if re.match("[0-9a-f]+-[0-9a-f]+$", words[0]):
            counts = not (len(words) > 5 and ".so" in words[5])
        elif words[0] == "Rss:" and counts:
            total += 1024 * int(words[1])
    return total


# --- one side in its process

def run_hidet(library, file, inputs):
    lib = ctypes.CDLL(library)
    lib.hidet_last_error.restype = ctypes.c_char_p

    def call(name, *args):
        if getattr(lib, "hidet_" + name)(*args):
            raise RuntimeError(lib.hidet_last_error().decode())
    before = resident_data()
    model = ctypes.c_void_p()
    call("load_model", file.encode(), None, ctypes.byref(model))
    lib.hidet_model_num_outputs.restype = ctypes.c_size_t
    count = lib.hidet_model_num_outputs(model)
    tensors, kept = (ctypes.c_void_p * len(inputs))(), []
    for k, (_, shape, is_float) in enumerate(inputs):
        bytes_ = 4 if is_float else 8
        for n in shape:
            bytes_ *= n
        # Zeros are valid floats; integers are 1, as in peers.py.
        kept.append(ctypes.create_string_buffer(bytes_ if is_float else b"\1\0\0\0\0\0\0\0" * (bytes_ // 8), bytes_))
        one = ctypes.c_void_p()
        call("tensor_from_blob", kept[-1], (ctypes.c_int64 * 16)(*shape), len(shape), 11 if is_float else 4,
             ctypes.c_int64(0), ctypes.byref(one))
        tensors[k] = one
    outputs = (ctypes.c_void_p * count)()
    call("run", model, tensors, ctypes.c_size_t(len(inputs)), outputs, ctypes.c_size_t(count))
    return resident_data() - before, model


def run_onnxruntime(file, inputs):
    import numpy as np
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    session.run(None, {name: np.zeros(shape, np.float32) if is_float else np.ones(shape, np.int64)
                       for name, shape, is_float in inputs})
    return None, session


def run_one(options):
    side, file, inputs = options.one
    inputs = json.loads(inputs)
    library = str(options.build.resolve() / "lib" / "libhidet_runtime.so")
    grown, _kept = run_hidet(library, file, inputs) if side == "hidet" else run_onnxruntime(file, inputs)
    print(json.dumps({"grown": grown, "after": resident("VmRSS"), "peak": resident("VmHWM")}))


def measure(side, file, inputs, build):
    words = [sys.executable, __file__, "--build", build, "--one", side, file, json.dumps(inputs)]
    out = subprocess.run(list(map(str, words)), env=dict(os.environ, HIDET_NUM_THREADS="1"), check=True,
                         capture_output=True, text=True).stdout
    return json.loads(out)


def main():
    options = arguments()
    if options.one:
        return run_one(options)
    options.build = options.build.resolve()
    options.threads, options.fixed = "1", False
    folder = options.build / "peers"
    folder.mkdir(parents=True, exist_ok=True)
    peers.enter_own_python(folder, peers.PACKAGES)
    rows = []
    print("MB; peak: with the process; grown: since before the load; limit: file + 1.2 x plan")
    print(f"{'model':16} {'file':>8} {'plan':>8} {'peak':>9} {'peak, ORT':>10} {'ratio':>6} {'after':>8} {'after, ORT':>10} {'grown':>8} {'limit':>8}")
    for text in options.cases or CASES:
        case = peers.Case(text, options, folder)
        inputs = [(name, list(v.shape), v.dtype.kind == "f") for name, v in case.feed.items()]
        case.command("bench", case.compiled, *case.inputs, "--threads", 1, "--iterations", 1, "--warm-up", 0,
                     "--json", case.folder / "bench.json")
        plan = json.loads((case.folder / "bench.json").read_text())["peak_bytes"]
        ours, theirs = measure("hidet", case.compiled, inputs, options.build), measure("onnxruntime", case.onnx, inputs, options.build)
        case.command("inspect", case.compiled, "--json", case.folder / "inspect.json")
        plan -= json.loads((case.folder / "inspect.json").read_text())["weights_bytes"]
        file = case.compiled.stat().st_size
        row = {"case": text, "file": file, "plan": plan, "hidet": ours, "onnxruntime": theirs,
               "limit": file + 1.2 * plan, "ratio": ours["peak"] / theirs["peak"]}
        rows.append(row)
        numbers = [file, plan, ours["peak"], theirs["peak"]]
        print(f"{text.split('@')[0]:16} " + " ".join(f"{n / MB:{w}.1f}" for n, w in zip(numbers, (8, 8, 9, 10))) +
              f" {row['ratio']:6.2f} {ours['after'] / MB:8.1f} {theirs['after'] / MB:10.1f} {ours['grown'] / MB:8.1f} {row['limit'] / MB:8.1f}"
              f"{'' if row['ratio'] <= 1 and ours['grown'] <= row['limit'] else '  above'}", flush=True)
    (options.json or folder / "memory.json").write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
