#!/usr/bin/env python3
"""Measures compiled models beside ONNX Runtime on this machine.

Runs `hidet bench` and ONNX Runtime in turns (rounds), so that both meet the same noise; compares the outputs
first. Needs: a build (bin/hidet), the filled models (tests/models/fill_weights.py), python3 with venv and the
network once, for onnxruntime. Leaves: BUILD/peers (a Python of its own, compiled models, results.json).

    peers.py [--build BUILD] [--models DIR] [--rounds N] [--threads 1,2] [--json FILE] [CASE ...]

A CASE is MODEL or MODEL@NAME:SIZExSIZE[,NAME:...]; without one: resnet50 and mobilenet_v2 at batch 1 and 3,
bert_base at sequences of 7 and 128, and each other f32 model of tests/models at one size. Exit status: 0, or 1 where an output differs by more than 2e-4 of its scale.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
CASES = [f"{m}@x:{n}x3x224x224" for m in ("resnet50", "mobilenet_v2") for n in (1, 3)] + [
    f"bert_base@input_ids:1x{n},attention_mask:1x{n}" for n in (7, 128)] + [
    "gpt2", "vit_b_16", "llama_decode", "llama_prefill@input_ids:1x128", "lstm_tagger@x:1x50x64",
    "unet_small@x:1x4x64x64"]
TOLERANCE = 2e-4


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cases", nargs="*", metavar="CASE")
    p.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    p.add_argument("--models", type=pathlib.Path, help="folder of the .onnx files; default BUILD/models")
    p.add_argument("--rounds", type=int, default=10)
    p.add_argument("--threads", default="1,2")
    p.add_argument("--json", type=pathlib.Path, help="default BUILD/peers/results.json")
    return p.parse_args()


def enter_own_python(folder):
    """Goes on in a Python that has onnxruntime, made on first use."""
    python = folder / "venv" / "bin" / "python"
    if pathlib.Path(sys.prefix) == folder / "venv":
        return
    if not (folder / "venv" / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "numpy", "onnxruntime"], check=True)
        (folder / "venv" / "ready").touch()
    os.execv(python, [str(python), *sys.argv])


def parse_shapes(text):
    return {name: [int(n) for n in sizes.split("x")]
            for name, sizes in (part.split(":") for part in text.split(",") if part)}


class Case:
    """One model at one set of shapes, on both sides."""

    def __init__(self, text, options, folder):
        import numpy as np
        import onnxruntime as ort
        self.name = text
        model, _, shapes = text.partition("@")
        self.onnx = (options.models or options.build / "models") / f"{model}.onnx"
        self.hidet = options.build / "bin" / "hidet"
        self.compiled = folder / f"{model}.hidet"
        self.shapes = parse_shapes(shapes)
        if not self.compiled.exists() or self.compiled.stat().st_mtime < self.hidet.stat().st_mtime:
            self.command("compile", self.onnx, "-o", self.compiled, "--target", "cpu:native")
        self.sessions = {}
        for threads in options.threads.split(","):
            o = ort.SessionOptions()
            o.intra_op_num_threads = int(threads)
            self.sessions[int(threads)] = ort.InferenceSession(
                str(self.onnx), o, providers=["CPUExecutionProvider"])
        generator = np.random.default_rng(7)
        self.feed = {}
        for i in next(iter(self.sessions.values())).get_inputs():
            shape = self.shapes.get(i.name, [1 if isinstance(n, str) else n for n in i.shape])
            is_float = i.type == "tensor(float)"
            # Integers are 0 or 1: valid as a mask and as an index.
            self.feed[i.name] = (generator.standard_normal(shape).astype(np.float32) if is_float
                                 else np.ones(shape, np.int64))
        self.folder = folder / "values"
        self.folder.mkdir(exist_ok=True)
        for name, value in self.feed.items():
            np.save(self.folder / f"{name}.npy", value)
        self.inputs = [word for name in self.feed
                       for word in ("--input", f"{name}=@{self.folder / name}.npy")]

    def command(self, *words):
        return subprocess.run([str(self.hidet), *map(str, words), "-q"], check=True,
                              capture_output=True, text=True).stdout

    def difference(self):
        """The largest difference of an output, relative to the output's scale."""
        import numpy as np
        session = next(iter(self.sessions.values()))
        names = [o.name for o in session.get_outputs()]
        self.command("run", self.compiled, *self.inputs, "--output-dir", self.folder)
        worst = 0.0
        for name, want in zip(names, session.run(names, self.feed)):
            got = np.load(self.folder / f"{name}.npy")
            if got.shape != want.shape or not np.isfinite(got).all():
                return float("inf")
            worst = max(worst, float(np.abs(got - want).max() / max(np.abs(want).max(), 1e-30)))
        return worst

    def ours(self, threads, runs):
        out = self.command("bench", self.compiled, *self.inputs, "--threads", threads,
                           "--iterations", runs, "--json", self.folder / "bench.json")
        result = json.loads((self.folder / "bench.json").read_text())
        return result["median_ms"], result["min_ms"]

    def theirs(self, threads, runs):
        session, times = self.sessions[threads], []
        for _ in range(runs + 2):
            start = time.perf_counter()
            session.run(None, self.feed)
            times.append((time.perf_counter() - start) * 1e3)
        return statistics.median(times[2:]), min(times[2:])


def measure(case, options):
    """Rounds of both sides in turn; one row a number of threads."""
    rows = []
    for threads in case.sessions:
        runs = max(3, min(50, int(300 / case.theirs(threads, 1)[0])))
        rounds = [(case.ours(threads, runs), case.theirs(threads, runs)) for _ in range(options.rounds)]
        row = {"case": case.name, "threads": threads, "runs": runs, "rounds": options.rounds}
        for i, side in enumerate(("hidet", "onnxruntime")):
            row[f"{side}_median_ms"] = statistics.median(r[i][0] for r in rounds)
            row[f"{side}_min_ms"] = min(r[i][1] for r in rounds)
        row["ratio"] = row["hidet_median_ms"] / row["onnxruntime_median_ms"]
        rows.append(row)
    return rows


def main():
    options = arguments()
    options.build = options.build.resolve()
    folder = options.build / "peers"
    folder.mkdir(parents=True, exist_ok=True)
    enter_own_python(folder)
    import onnxruntime as ort
    results = {"onnxruntime": ort.__version__, "cpus": os.cpu_count(), "rows": []}
    print(f"{'case':58} threads  hidet median    min   ONNX Runtime median    min   ratio  difference")
    for text in options.cases or CASES:
        case = Case(text, options, folder)
        difference = case.difference()
        for row in measure(case, options):
            row["difference"] = difference
            results["rows"].append(row)
            print(f"{row['case']:58} {row['threads']:7} {row['hidet_median_ms']:13.2f} {row['hidet_min_ms']:6.2f} "
                  f"{row['onnxruntime_median_ms']:21.2f} {row['onnxruntime_min_ms']:6.2f} {row['ratio']:7.2f} "
                  f"{difference:11.1e}", flush=True)
    (options.json or folder / "results.json").write_text(json.dumps(results, indent=1))
    return int(any(not row["difference"] <= TOLERANCE for row in results["rows"]))


if __name__ == "__main__":
    sys.exit(main())
