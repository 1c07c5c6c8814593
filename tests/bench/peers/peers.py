#!/usr/bin/env python3
"""Measures compiled models beside ONNX Runtime and OpenVINO on this machine.

Runs `hidet bench` and the peers in turns (rounds), so that all meet the same noise; compares the outputs with
ONNX Runtime's first. Ours has the model's symbolic shapes (--fixed: those of the case), ONNX Runtime the model as it is, OpenVINO
fixed shapes, which suit it best; all compute in f32. Needs: a build (bin/hidet), the filled models
(tests/models/fill_weights.py), python3 with venv and the network once, for the peers. Leaves: BUILD/peers (a Python of its own, compiled models, results.json).

    peers.py [--build BUILD] [--models DIR] [--rounds N] [--threads 1,2] [--fixed] [--json FILE] [CASE ...]

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
PACKAGES = ["numpy", "onnxruntime", "openvino"]
TOLERANCE = 2e-4


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cases", nargs="*", metavar="CASE")
    p.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    p.add_argument("--models", type=pathlib.Path, help="folder of the .onnx files; default BUILD/models")
    p.add_argument("--rounds", type=int, default=10)
    p.add_argument("--threads", default="1,2")
    p.add_argument("--fixed", action="store_true", help="compile ours for the case's shapes alone")
    p.add_argument("--json", type=pathlib.Path, help="default BUILD/peers/results.json")
    return p.parse_args()


def enter_own_python(folder, packages):
    """Goes on in a Python that has the packages, made on first use."""
    python = folder / "venv" / "bin" / "python"
    ready = folder / "venv" / "packages"
    have = ready.read_text().split() if ready.exists() else []
    if not set(packages) <= set(have):
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True)
        ready.write_text(" ".join(sorted({*have, *packages})))
    if pathlib.Path(sys.prefix) != folder / "venv":
        os.execv(python, [str(python), *sys.argv])


def parse_shapes(text):
    return {name: [int(n) for n in sizes.split("x")]
            for name, sizes in (part.split(":") for part in text.split(",") if part)}


class OnnxRuntime:
    name = "onnxruntime"

    def __init__(self, onnx, threads, feed):
        import onnxruntime as ort
        o = ort.SessionOptions()
        o.intra_op_num_threads = threads
        self.session = ort.InferenceSession(str(onnx), o, providers=["CPUExecutionProvider"])

    def run(self, feed):
        return self.session.run(None, feed)


class OpenVino:
    name = "openvino"

    def __init__(self, onnx, threads, feed):
        import openvino as ov
        core = ov.Core()
        model = core.read_model(str(onnx))
        model.reshape({name: list(value.shape) for name, value in feed.items()})
        self.request = core.compile_model(model, "CPU", {
            "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32",
            "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1}).create_infer_request()

    def run(self, feed):
        self.request.infer(feed, share_inputs=True, share_outputs=True)


PEERS = (OnnxRuntime, OpenVino)


class Case:
    """One model at one set of shapes, on all sides."""

    def __init__(self, text, options, folder):
        import numpy as np
        import onnxruntime as ort
        self.name = text
        model, _, shapes = text.partition("@")
        self.onnx = (options.models or options.build / "models") / f"{model}.onnx"
        self.hidet = options.build / "bin" / "hidet"
        self.shapes = parse_shapes(shapes)
        generator = np.random.default_rng(7)
        self.feed = {}
        for i in ort.InferenceSession(str(self.onnx), providers=["CPUExecutionProvider"]).get_inputs():
            shape = self.shapes.get(i.name, [1 if isinstance(n, str) else n for n in i.shape])
            is_float = i.type == "tensor(float)"
            # Integers are 0 or 1: valid as a mask and as an index.
            self.feed[i.name] = (generator.standard_normal(shape).astype(np.float32) if is_float
                                 else np.ones(shape, np.int64))
        self.compiled = folder / f"{model}.hidet"
        fixed = []
        if options.fixed:
            sizes = ",".join(f"{name}:" + "x".join(map(str, v.shape)) for name, v in self.feed.items())
            self.compiled = folder / f"{text.replace(':', '_').replace(',', '_')}.fixed.hidet"
            fixed = ["--shapes", sizes]
        if not self.compiled.exists() or self.compiled.stat().st_mtime < self.hidet.stat().st_mtime:
            self.command("compile", self.onnx, "-o", self.compiled, "--target", "cpu:native", *fixed)
        self.threads = [int(n) for n in options.threads.split(",")]
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
        session = OnnxRuntime(self.onnx, 1, self.feed).session
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

    def theirs(self, peer, runs):
        times = []
        for _ in range(runs + 2):
            start = time.perf_counter()
            peer.run(self.feed)
            times.append((time.perf_counter() - start) * 1e3)
        return statistics.median(times[2:]), min(times[2:])


def measure(case, options):
    """Rounds of all sides in turn; one row a number of threads."""
    rows = []
    for threads in case.threads:
        peers = [kind(case.onnx, threads, case.feed) for kind in PEERS]
        runs = max(3, min(50, int(300 / case.theirs(peers[0], 1)[0])))
        rounds = []
        for _ in range(options.rounds):
            rounds.append([case.ours(threads, runs)] + [case.theirs(p, runs) for p in peers])
        row = {"case": case.name, "threads": threads, "runs": runs, "rounds": options.rounds}
        for i, side in enumerate(["hidet"] + [p.name for p in PEERS]):
            row[f"{side}_median_ms"] = statistics.median(r[i][0] for r in rounds)
            row[f"{side}_min_ms"] = min(r[i][1] for r in rounds)
        for p in PEERS:
            row[f"ratio_{p.name}"] = row[f"{p.name}_median_ms"] / row["hidet_median_ms"]
        row["ratio"] = min(row[f"ratio_{p.name}"] for p in PEERS)
        rows.append(row)
    return rows


def mean_ratio(rows):
    """Geometric mean of best peer / hidet."""
    return statistics.geometric_mean(row["ratio"] for row in rows) if rows else float("nan")


def main():
    options = arguments()
    options.build = options.build.resolve()
    folder = options.build / "peers"
    folder.mkdir(parents=True, exist_ok=True)
    enter_own_python(folder, PACKAGES)
    import onnxruntime
    import openvino
    results = {"onnxruntime": onnxruntime.__version__, "openvino": openvino.__version__,
               "cpus": os.cpu_count(), "rows": []}
    print(f"onnxruntime {results['onnxruntime']}, openvino {results['openvino']}; median / min in ms; ratio: best peer / hidet")
    print(f"{'case':50} threads  {'hidet':>16} {'ONNX Runtime':>16} {'OpenVINO':>16}  ratio  difference")
    for text in options.cases or CASES:
        case = Case(text, options, folder)
        difference = case.difference()
        for row in measure(case, options):
            row["difference"] = difference
            results["rows"].append(row)
            times = " ".join(f"{row[f'{side}_median_ms']:8.2f}/{row[f'{side}_min_ms']:7.2f}"
                             for side in ("hidet", "onnxruntime", "openvino"))
            print(f"{row['case']:50} {row['threads']:7}  {times} {row['ratio']:6.2f} {difference:11.1e}", flush=True)
    print(f"geometric mean of the ratios: {mean_ratio(results['rows']):.2f}")
    (options.json or folder / "results.json").write_text(json.dumps(results, indent=1))
    return int(any(not row["difference"] <= TOLERANCE for row in results["rows"]))


if __name__ == "__main__":
    sys.exit(main())
