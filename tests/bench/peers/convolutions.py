#!/usr/bin/env python3
"""Measures every convolution shape of some models beside oneDNN on this machine.

Each shape is a model of one convolution with bias (NHWC outside, as inside a network) with seeded values: `hidet bench` and oneDNN
(its C interface, layouts of its own choice, weights reordered before) run it in turns. Needs: a build (bin/hidet), the filled models
(tests/models/fill_weights.py), python3 with venv and the network once, for the peers. Leaves: BUILD/peers/onednn (a Python of its
own, models of one convolution, convolutions.json).

    convolutions.py [--build BUILD] [--models DIR] [--rounds N] [--threads 1,2] [--json FILE] [SHAPE ...]

A SHAPE is as the table prints it, or the beginning of some; without one: all of resnet50, mobilenet_v2 and unet_small (64x64). Exit
status: 0, or 1 where a result differs by more than 2e-4 of its scale.
"""
import argparse
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import peers

PACKAGES = ["numpy", "onnx", "onnxruntime", "onednn-cpu-gomp"]
MODELS = {"resnet50": [1, 3, 224, 224], "mobilenet_v2": [1, 3, 224, 224], "unet_small": [1, 4, 64, 64]}
FIELDS = ("c", "h", "w", "n", "r", "s", "stride", "top", "left", "bottom", "right", "groups")


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("shapes", nargs="*", metavar="SHAPE")
    p.add_argument("--build", type=pathlib.Path, default=peers.ROOT / "build")
    p.add_argument("--models", type=pathlib.Path, help="folder of the .onnx files; default BUILD/models")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--threads", default="1,2")
    p.add_argument("--json", type=pathlib.Path, help="default BUILD/peers/onednn/convolutions.json")
    p.add_argument("--onednn", nargs=3, metavar=("SHAPE", "RUNS", "FOLDER"), help=argparse.SUPPRESS)
    return p.parse_args()


# --- shapes

def name_of(shape):
    """3x3s1 64->64 at 56x56, p1.1.1.1; depthwise: 3x3s2 dw96 at 112x112, ..."""
    s = dict(zip(FIELDS, shape))
    channels = f"dw{s['c']}" if s["groups"] == s["c"] > 1 else f"{s['c']}->{s['n']}"
    return f"{s['r']}x{s['s']}s{s['stride']}_{channels}_at_{s['h']}x{s['w']}_p{s['top']}.{s['left']}.{s['bottom']}.{s['right']}"


def shapes_of(onnx_file, size):
    """{shape: how often} of a model's convolutions; their inputs' sizes come from a run in ONNX Runtime."""
    import numpy as np
    import onnx
    import onnxruntime as ort
    model = onnx.load(str(onnx_file))
    convs = [n for n in model.graph.node if n.op_type == "Conv"]
    weights = {i.name: i.dims for i in model.graph.initializer}
    inputs = {v.name for v in model.graph.input}
    wanted = sorted({n.input[0] for n in convs} - inputs)
    kept = [o.name for o in model.graph.output]
    model.graph.output.extend(onnx.ValueInfoProto(name=n) for n in wanted if n not in kept)
    exposed = onnx_file.with_name(onnx_file.stem + ".exposed.onnx")
    onnx.save(model, str(exposed), save_as_external_data=True, location=exposed.name + ".data")
    try:
        session = ort.InferenceSession(str(exposed), providers=["CPUExecutionProvider"])
        feed = {i.name: np.zeros(size if len(i.shape) == 4 else [size[0]] * len(i.shape),
                                 np.float32 if i.type == "tensor(float)" else np.int64)
                for i in session.get_inputs()}
        sizes = {name: v.shape for name, v in zip(wanted, session.run(wanted, feed))}
        sizes.update({name: v.shape for name, v in feed.items()})
    finally:
        exposed.unlink()
        pathlib.Path(str(exposed) + ".data").unlink()
    count = {}
    for n in convs:
        a = {i.name: onnx.helper.get_attribute_value(i) for i in n.attribute}
        _, c, h, w = sizes[n.input[0]]
        filters, _, r, s = weights[n.input[1]]
        shape = (c, h, w, filters, r, s, a.get("strides", [1, 1])[0], *a.get("pads", [0] * 4), a.get("group", 1))
        count[shape] = count.get(shape, 0) + 1
    return count


def conv_model(shape, path):
    """One convolution between transposes that turn NHWC into NCHW and back."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper, save
    s = dict(zip(FIELDS, shape))
    generator = np.random.default_rng(5)
    scale = (s["c"] // s["groups"] * s["r"] * s["s"]) ** -0.5
    weight = (generator.standard_normal((s["n"], s["c"] // s["groups"], s["r"], s["s"])) * scale).astype(np.float32)
    bias = generator.standard_normal(s["n"]).astype(np.float32)
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
             helper.make_node("Conv", ["t", "w", "b"], ["u"], strides=[s["stride"]] * 2, group=s["groups"],
                              pads=[s["top"], s["left"], s["bottom"], s["right"]]),
             helper.make_node("Transpose", ["u"], ["y"], perm=[0, 2, 3, 1])]
    graph = helper.make_graph(nodes, "convolution",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, s["h"], s["w"], s["c"]])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(bias, "b")])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))


# --- oneDNN, in a process of its own

class OneDnn:
    """The few functions of oneDNN's C interface that a convolution needs."""
    FORWARD_INFERENCE, DIRECT, F32, ANY, CPU = 96, 1, 3, 1, 1  # the header's numbers
    SRC, DST, WEIGHTS, BIAS = 1, 17, 33, 41
    QUERY = {"src": 129, "weights": 131, "dst": 133}

    def __init__(self):
        self.lib = ctypes.CDLL(str(pathlib.Path(sys.prefix) / "lib" / "libdnnl.so.3"))
        self.lib.dnnl_primitive_desc_query_md.restype = ctypes.c_void_p
        self.engine = self.make("engine_create", self.CPU, ctypes.c_size_t(0))
        self.stream = self.make("stream_create", self.engine, 1)
        self.keep = []

    def call(self, name, *args):
        status = getattr(self.lib, "dnnl_" + name)(*args)
        if status:
            raise RuntimeError(f"dnnl_{name}: status {status}")

    def make(self, name, *args):
        out = ctypes.c_void_p()
        self.call(name, ctypes.byref(out), *args)
        return out

    def dims(self, values):
        array = (ctypes.c_int64 * 12)(*values)
        self.keep.append(array)
        return array

    def any_desc(self, sizes):
        return self.make("memory_desc_create_with_tag", len(sizes), self.dims(sizes), self.F32, self.ANY)

    def desc(self, sizes, order):
        """Dense, the dims of `order` from the outermost to the innermost."""
        strides, step = [0] * len(sizes), 1
        for d in reversed(order):
            strides[d] = step
            step *= sizes[d]
        return self.make("memory_desc_create_with_strides", len(sizes), self.dims(sizes), self.F32, self.dims(strides))

    def memory(self, desc, array=None):
        self.keep.append(array)
        pointer = ctypes.c_void_p(-1) if array is None else array.ctypes.data_as(ctypes.c_void_p)
        return self.make("memory_create", desc, self.engine, pointer)

    def run(self, primitive, arguments):
        class Argument(ctypes.Structure):
            _fields_ = [("arg", ctypes.c_int), ("memory", ctypes.c_void_p)]
        array = (Argument * len(arguments))(*[Argument(k, m.value) for k, m in arguments])

        def go():
            self.call("primitive_execute", primitive, self.stream, len(arguments), array)
            self.call("stream_wait", self.stream)
        return go

    def reorder(self, from_desc, from_memory, to_desc, to_memory):
        pd = self.make("reorder_primitive_desc_create", from_desc, self.engine, to_desc, self.engine, None)
        self.run(self.make("primitive_create", pd), [(self.SRC, from_memory), (self.DST, to_memory)])()

    def convolution(self, shape, x, weight, bias, y):
        """A function that runs the convolution, and one that writes its result to `y` (NHWC)."""
        s = dict(zip(FIELDS, shape))
        grouped = s["groups"] > 1
        w_sizes = list(weight.shape)
        if grouped:
            w_sizes = [s["groups"], s["n"] // s["groups"], s["c"] // s["groups"], s["r"], s["s"]]
        x_sizes, y_sizes = [1, s["c"], s["h"], s["w"]], [1, s["n"], y.shape[1], y.shape[2]]
        pd = self.make("convolution_forward_primitive_desc_create", self.engine, self.FORWARD_INFERENCE, self.DIRECT,
                       self.any_desc(x_sizes), self.any_desc(w_sizes), self.desc([s["n"]], [0]),
                       self.any_desc(y_sizes), self.dims([s["stride"]] * 2), self.dims([0, 0]),
                       self.dims([s["top"], s["left"]]), self.dims([s["bottom"], s["right"]]), None)
        chosen = {name: ctypes.c_void_p(self.lib.dnnl_primitive_desc_query_md(pd, q, 0)) for name, q in self.QUERY.items()}
        memories = {name: self.memory(desc) for name, desc in chosen.items()}
        for name, array, plain in (("src", x, self.desc(x_sizes, [0, 2, 3, 1])),
                                   ("weights", weight, self.desc(w_sizes, range(len(w_sizes))))):
            self.reorder(plain, self.memory(plain, array), chosen[name], memories[name])
        go = self.run(self.make("primitive_create", pd), [
            (self.SRC, memories["src"]), (self.WEIGHTS, memories["weights"]), (self.DST, memories["dst"]),
            (self.BIAS, self.memory(self.desc([s["n"]], [0]), bias))])
        plain = self.desc(y_sizes, [0, 2, 3, 1])
        return go, lambda: self.reorder(chosen["dst"], memories["dst"], plain, self.memory(plain, y))


def run_onednn(name, runs, folder):
    """Prints the median and the least time in ms, and the largest relative difference from what hidet wrote."""
    import numpy as np
    import onnx
    folder = pathlib.Path(folder)
    case = json.loads((folder / f"{name}.json").read_text())
    model = onnx.load(str(folder / f"{name}.onnx"))
    weight, bias = (onnx.numpy_helper.to_array(i).copy() for i in model.graph.initializer)
    want = np.load(folder / "values" / "y.npy")
    y = np.zeros_like(want)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:int(os.environ["OMP_NUM_THREADS"])])
    go, fetch = OneDnn().convolution(case, np.load(folder / "values" / "x.npy"), weight, bias, y)
    times = []
    for _ in range(runs + 3):
        start = time.perf_counter()
        go()
        times.append((time.perf_counter() - start) * 1e3)
    fetch()
    print(statistics.median(times[3:]), min(times[3:]), np.abs(y - want).max() / max(np.abs(want).max(), 1e-30))


# --- the table

def measure(case, name, folder, threads, rounds):
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), LD_LIBRARY_PATH=str(pathlib.Path(sys.prefix) / "lib"))
    runs = max(10, min(400, int(60 / case.ours(threads, 5)[0])))
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(case.ours(threads, runs))
        words = subprocess.run([sys.executable, __file__, "--onednn", name, str(runs), str(folder)], env=environment,
                               check=True, capture_output=True, text=True).stdout.split()
        theirs.append([float(w) for w in words])
    middle = lambda rows, i: statistics.median(r[i] for r in rows)
    return {"threads": threads, "hidet_ms": middle(ours, 0), "hidet_min_ms": min(r[1] for r in ours),
            "onednn_ms": middle(theirs, 0), "onednn_min_ms": min(r[1] for r in theirs), "difference": max(r[2] for r in theirs)}


def main():
    options = arguments()
    if options.onednn:
        return run_onednn(options.onednn[0], int(options.onednn[1]), options.onednn[2])
    options.build = options.build.resolve()
    folder = options.build / "peers" / "onednn"
    folder.mkdir(parents=True, exist_ok=True)
    peers.enter_own_python(folder, PACKAGES)
    count = {}
    for model, size in MODELS.items():
        for shape, n in shapes_of((options.models or options.build / "models") / f"{model}.onnx", size).items():
            count.setdefault(shape, {})[model] = n
    wanted = {s: c for s, c in count.items()
              if not options.shapes or any(name_of(s).startswith(text) for text in options.shapes)}
    options.models, options.fixed = folder, False
    rows = []
    print(f"{'shape':44} threads    hidet   oneDNN  ratio (oneDNN / hidet, medians, ms; GFLOP/s of hidet)")
    for shape, used in wanted.items():
        name = name_of(shape)
        conv_model(shape, folder / f"{name}.onnx")
        (folder / f"{name}.json").write_text(json.dumps(shape))
        case = peers.Case(name, options, folder)
        case.command("run", case.compiled, *case.inputs, "--output-dir", case.folder)
        s = dict(zip(FIELDS, shape))
        outputs = [(s[size] + s[a] + s[b] - s[k]) // s["stride"] + 1
                   for size, a, b, k in (("h", "top", "bottom", "r"), ("w", "left", "right", "s"))]
        flops = 2 * outputs[0] * outputs[1] * s["n"] * s["c"] // s["groups"] * s["r"] * s["s"]
        for threads in case.threads:
            row = {"shape": name, "used": used, **measure(case, name, folder, threads, options.rounds)}
            row["ratio"] = row["onednn_ms"] / row["hidet_ms"]
            row["gflops"] = flops / row["hidet_ms"] * 1e-6
            rows.append(row)
            print(f"{name:44} {threads:7} {row['hidet_ms']:8.4f} {row['onednn_ms']:8.4f} {row['ratio']:6.2f} {row['gflops']:6.0f}"
                  f"{'' if row['difference'] <= peers.TOLERANCE else '  WRONG'}", flush=True)
    print(f"geometric mean of the ratios: {peers.mean_ratio(rows):.2f}; below 1: {sum(r['ratio'] < 1 for r in rows)} of {len(rows)}")
    (options.json or folder / "convolutions.json").write_text(json.dumps(rows, indent=1))
    return int(any(not r["difference"] <= peers.TOLERANCE for r in rows))


if __name__ == "__main__":
    sys.exit(main())
