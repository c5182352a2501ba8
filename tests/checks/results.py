#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""results.py ROOT tables|pictures

The tables of bench/report/report.py and the pictures of bench/report/plot.py, for small files of results written here.
Without matplotlib, `pictures` ends with status 77, which CTest counts as skipped.
"""
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT, WHAT = Path(sys.argv[1]), sys.argv[2]
HEADER = """# suite %s, commit c0ffee, 2000-01-01
# device: NVIDIA H200, driver 1
"""
LATER = """# suite grid, commit %s, 2000-01-0%d
# device: NVIDIA H200, driver 1
# libraries: one 1, two 2 (a, b)
# median of %d
# a note
"""
STAGED = ("staged basis=16x16 tiles=1x1 dilation=step overlap=save product=blas spectrum=fp32 chunk=128 groups=1 "
          "keep=none")
COLUMNS = "suite,case,pass,precision,layout,impl,ms,workspace_bytes,rel_l2,strategy\n"


def row(suite, case, passname, impl, ms, strategy="", precision="fp32", layout="first"):
    error = 2e-7 if impl == "cudnn" else 1e-7
    return "%s,%s,%s,%s,%s,%s,%.4f,0,%.2e,%s\n" % (suite, case, passname, precision, layout, impl, ms, error, strategy)


def layer(suite, case, ours, baseline, **of_class):
    """Four passes. The joint pass takes a quarter less than its two halves. A foreign family would be faster."""
    for passname, factor in (("fprop", 1), ("bprop", 1), ("accgrad", 1), ("backward", 1.5)):
        yield row(suite, case, passname, "ours-staged", ours * factor, STAGED, **of_class)
        yield row(suite, case, passname, "tuned", 0.5 * ours * factor, "cudnn engine=1", **of_class)
        yield row(suite, case, passname, "ours-cudnn", 0.5 * ours * factor, "cudnn engine=1", **of_class)
        yield row(suite, case, passname, "cudnn", baseline * factor, "engine 1", **of_class)


def write_results(folder):
    """Layers (L4 before L2, two classes, kept spectra, a pass by both families), a long grid, products, stages (with a
    copy of 1 ms), transforms, and tuned plans in a file of their own."""
    conv = [COLUMNS, HEADER % "table4", *layer("table4", "L4", 1, 4), *layer("table4", "L2", 2, 1),
            *layer("table4", "L4", 1, 2, precision="fp16", layout="last")]
    for impl, ms in (("ours-staged", 0.8), ("unkept", 1), ("transforms", 0.25)):
        conv.append(row("table4", "L4", "fprop-kept", impl, ms, STAGED))
    conv.append(row("table4", "L2", "fprop", "ours-fused", 3,
                    "fused basis=16x16 tiles=1x1 dilation=step spectrum=fp32"))
    conv += [row("gemm", "9-8x7x6", "fprop", impl, ms, "products")
             for impl, ms in (("ours", 1), ("cublas", 3), ("copy", 0.5))]
    stages = [COLUMNS, HEADER % "table4"]
    for name, strategy in (('"stage transform w, x"', STAGED), ("stage product y", STAGED.replace("blas", "tensor"))):
        stages.append(row("table4", "L4", "fprop", name, 2, "589824 bytes 66908160000 operations of " + strategy))
    (folder / "stages.csv").write_text("".join(stages))
    conv += [row("signals", "k31", "fprop", impl, ms, STAGED)
             for impl, ms in (("ours-staged", 2), ("tuned", 1.1), ("cudnn", 1))]
    conv += [row("dense16", "alexnet-conv2", "fprop", impl, ms, STAGED, precision="bf16")
             for impl, ms in (("ours-staged", 2), ("choice", 1.2), ("cudnn", 1))]
    conv += [row("dense16", "alexnet-conv2", "bprop", impl, ms, STAGED, precision="bf16")
             for impl, ms in (("ours-staged", 2), ("cudnn", 1))]
    for i in range(44):
        if i % 12 == 1:  # four headers, of two commits and three ways
            conv.append(LATER % (("c0ffee", "f00d")[i > 12], i // 12 + 2, min(3, i // 12 + 1)))
        conv += layer("grid", "g%03d-k%d-o%d-f4x4-s%d" % (i, 3 + i % 2 * 2, 2 ** (i % 7), 2 ** (i % 5)), 1, 1 + i / 10)
    fft = [COLUMNS, HEADER % "fft"]
    for case in ("1d-n8-b1024", "1d-n8-b16", "1d-n16-b1024", "2d-n8x8-b1024"):
        fft += [row("fft", case, passname, impl, ms) for passname in ("r2c", "c2r")
                for impl, ms in (("ours", 1.1), ("cufft", 2), ("copy", 1))]
    for case in ("1d-n4096-b4", "1d-n16384-b1"):  # points of a table of the paper, and a second case of as many
        fft += [row("fft", case, "c2c", impl, ms)
                for impl, ms in (("ours", 3), ("ours-split", 1), ("cufft", 2), ("copy", 0.5))]
    (folder / "quality.csv").write_text(
        "case,pass,winner_ms,off_ms,measure_ms,timed,reach,measure_s,exhaustive_s,winner,off,measure\n# some GPU\n"
        "g1,forward,1,1,1,9,1.5,1,20,a,a,a\ng1,backward,2,4,-1,7,1.25,1,20,b,c,d\n# off: sums\n")
    lines = "".join(conv).splitlines(keepends=True)
    (folder / "conv.csv").write_text("".join(line for line in lines if ",tuned," not in line))
    (folder / "tuned.csv").write_text("".join(line for line in lines if ",ours-cudnn," not in line))
    (folder / "fft.csv").write_text("".join(fft))
    warp = [row("warp", "1d-n8-b16", passname, impl, ms, "") for passname in ("r2c", "c2r")
            for impl, ms in (("ours", 1.5), ("shared_memory", 3), ("cufft", 1.2), ("copy", 1))]
    (folder / "warp.csv").write_text(COLUMNS + "# suite warp\n" + "".join(warp))


def write_cpu(results):
    """Layers beside torch, beside oneDNN (for all passes the fourth root of 0.64), and beside other programs."""
    for name in ("cpu-16", "some-cpu"):
        (results / name).mkdir()
    torch = [row("torch-mixed", case, passname, impl, ms, STAGED)
             for case, times in (("L4-b8", (4, 6)), ("L2", (1, 2)))
             for passname, ms_of_torch in zip(("fprop", "backward"), times)
             for impl, ms in (("ours-staged", 1), ("torch", ms_of_torch))]
    conv = [row("nets", "conv1", passname, impl, ms, STAGED)
            for passname, blocked in (("fprop", 1), ("bprop", 0.64), ("accgrad", 1), ("backward", 1))
            for impl, ms in (("ours-staged", 1), ("onednn-blocked", blocked))]
    (results / "cpu-16" / "torch.csv").write_text("".join([COLUMNS, *torch]))
    (results / "some-cpu" / "conv.csv").write_text("".join([COLUMNS, *conv]))
    (results / "some-cpu" / "busy.csv").write_text(
        "layer,pass,programs,one_thread_ms,two_threads_ms,ratio\n# some CPU\n"
        "in=1 out=1 kernel=3,forward,1,1,0.5,0.5\nin=1 out=1 kernel=3,forward,2,1,1.25,1.25\n")


def table_faults(results, folder):
    write_cpu(results)
    parts = ("layers", "means", "errors", "errors-short", "summary-short", "grid", "kept", "stages", "products",
             "tuned", "quality", "records", "warp", "suite-dense16", "split-paper-1", "split-paper-3", "1d", "fm",
             "picture-layers", "picture-grid")
    kinds = ["some-gpu-summary", *("some-gpu/" + part for part in parts), "some-cpu/busy", "some-cpu/goals"]
    page, picture = folder / "page.md", folder / "pictures" / "some-gpu-layers.svg"
    picture.parent.mkdir()
    picture.touch()
    page.write_text("".join("<!-- bench:%s:begin -->\n<!-- bench:%s:end -->\n" % (kind, kind) for kind in kinds))
    command = [sys.executable, str(ROOT / "bench" / "report" / "report.py"), str(page), "--results", str(results),
               "--pictures",
               str(picture.parent)]
    if subprocess.run([*command, "--check"], stderr=subprocess.DEVNULL).returncode == 0:
        yield "--check takes empty tables for good ones"
    if subprocess.run(command).returncode != 0 or subprocess.run([*command, "--check"]).returncode != 0:
        yield "report.py fails, or finds its own tables not up to date"
    text = page.read_text()
    head = "Measured with: commit%s; NVIDIA H200, driver 1%s."
    wanted = [head % (" c0ffee; 2000-01-01", ""),
              head % ("s c0ffee, f00d; 2000-01-01 to 2000-01-05",
                      "; one 1, two 2 (a, b); 3 ways of timing, each at the head of its results in bench/results"),
              "| table4 | L4 | fp32 | first | fprop | 1 | - | 4 | **4.00** | 1.0e-07 |",  # family cudnn is not ours
              "| suite | cases | fprop | bprop | accgrad | backward |",
              "| table4, fp16, channels last | 1 | **2.00** | **2.00** | **2.00** | **2.00** |",
              "summary-short:begin -->\n\n| suite | cases | fprop | bprop | accgrad | backward |\n"
              "|---|---:|---|---|---|---|\n| table4 | 2 | ",
              "| table4 | 2 | **1.41** (0.5 to 4, 1 of 2 faster) | **1.41** (0.5 to 4, 1 of 2 faster) |",
              "| table4 | L2 | fp32 | first | 0.5 | 0.5 | 0.5 | 0.5 | 1.33 |",
              "Geometric means over the layers of each suite: table4 **1.41**; table4, fp16, channels last **2.00**.",
              "| table4 | L4 | fp16 | last | 1.0e-07, 2.0e-07 | 1.0e-07, 2.0e-07 | 1.0e-07, 2.0e-07 |",
              "| fp16 | bprop | 1 | 1.0e-07, 2.0e-07 | 1.0e-07, 2.0e-07 | 0.5 (L4) |",
              "| grid | accgrad | 3x3 | 22 | 22 | **",
              "| table4 | L4 | fprop | 1 | 0.8 | 0.25 | 80 % |",
              "| table4 | L4 | fprop | transform w, x | 0.59 | 1 | 66.9 | 1 | 2 | 2.00 | 2.00 |",
              "| table4 | L4 | fprop | product y | 0.59 | 1 | 66.9 | 0.188 | 2 | 2.00 | 2.00 |",
              "| 9-8x7x6 | fp32 | 3 | 1 | 1.0e-07 | 1.0e-07 |",
              "| table4 | fprop | 2 | 0 | **2.83** | **1.00** L2 | 0 |",  # tuned: half the time of ours
              "| signals | fprop | 1 | 1 | 0.91 | 0.91 k31 | 1 |",
              "| grid | backward | 44 | 0 | **",
              "| off | both | 2 | 1.414 | 50 % | 50 % | 100 % | 2.00 (g1, backward) | 0 |",
              "| 1-D 8 | 1.50 | 3.00 | **1.20** | 1.50 | 3.00 | **1.20** |",
              "| 16,384 | 2.52, 2.56 | 3.76, 2.42 | - | 7.83e-7, 3.36e-6 | 1d-n4096-b4 | 0.5 | 2 | 3 | 1 | 2.00 | ",
              "| 16,384 | - | - | - | - | 1d-n16384-b1 | 0.5 | 2 | 3 | 1 | 2.00 | 1.0e-07, 1.0e-07, 1.0e-07 |",
              "| 32,768 | 2.53, 3.22 | - | 2.53, 3.23 | 7.81e-7, 2.10e-3 | - | - | - | - | - | - | - |",
              "split-paper-3:begin -->\n\nNo results yet.",
              "| 1d-n8-b16 | c2r | 1.1 | 2 | 1 | **1.82** | 0.91 |",
              "| dense16 | alexnet-conv2 | bf16 | first | fprop | 2 | 1 | 0.5 | 1.0e-07 | cudnn, 1.20 |",
              "| dense16 | alexnet-conv2 | bf16 | first | bprop | 2 | 1 | 0.5 | 1.0e-07 | ours, 2.00 |",
              "Measured with: some CPU.\n\n| layer | pass | programs: 1 | programs: 2 |",
              "| `in=1 out=1 kernel=3` | forward | 1, 0.5: 0.50 | 1, 1.25: 1.25 |",
              "| time of torch / ours | L4, forward | at least 0.8 | 4.00 | yes |",
              "| time of torch / ours | L4, forward and both gradients | at least 0.9 | 5.00 | yes |",
              "| time of torch / ours | L2, forward | at least 1.2 | 1.00 | **no** |",
              "| time of torch / ours | L3, forward | at least 1.2 | - | not measured |",
              "| time of oneDNN with its layouts / ours, mean | nets, bprop | at least 0.8 | 0.64 | **no** |",
              "| time of oneDNN with its layouts / ours, mean | nets, all passes | at least 0.8 | 0.89 | yes |",
              "| time of two threads / one, worst of 1 | busy programs: 1 | at most 1.2 | 0.50 | yes |",
              "| time of two threads / one, worst of 1 | busy programs: 2 | at most 1.2 | 1.25 | **no** |",
              "](pictures/some-gpu-layers.svg)", "No picture yet.", "No results yet.", "No records yet."]
    yield from ("no line %r in\n%s" % (line, text) for line in wanted if line not in text)
    if "| grid | g001" in text:
        yield "a long grid is in the table of every case"
    if not 0 < text.find("| table4 | L2 |") < text.find("| table4 | L4 |"):
        yield "the layers are not in the order of their file"


def work_faults():
    """The roofline counts gy twice if overlap-save tiles cut it in two ways, also in fused passes."""
    sys.path.insert(0, str(ROOT / "bench" / "report"))
    import results as measured
    import plot

    def work(passname, strategy):
        of = {"suite": "table4", "case": "L4", "pass": passname, "precision": "fp32", "layout": "first", "impl": "ours",
              "ms": 1, "rel_l2": 0,
              "strategy": strategy}
        run = measured.Run(of)
        run.add(of)
        return plot.work(run)

    tiled = STAGED.replace("tiles=1x1", "tiles=2x2")
    for name, strategy, shared in (("tiles", tiled, False), ("one tile", STAGED, True),
                                   ("added", tiled.replace("save", "add"), True)):
        halves, both = [work(name, strategy) for name in measured.HALVES], work("backward", strategy)
        if (both == tuple(map(sum, zip(*halves)))) == shared:
            yield "%s: both gradients are %s, their halves %s" % (name, both, halves)
    if not all(work(name, "fused basis=16x16 tiles=1x1 dilation=step spectrum=fp32")
               for name in ("fprop", "accgrad", "backward")):
        yield "fused passes are not counted"


def picture_faults(results, folder):
    environment = dict(os.environ, MPLCONFIGDIR=str(folder))
    pictures = []
    for name in ("first", "second"):
        command = [sys.executable, str(ROOT / "bench" / "report" / "plot.py"), "--results", str(results.parent),
                   "--out", str(folder / name)]
        if name == "second":
            (results.parent / "nothing").mkdir()
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        pictures.append({path.name: path.read_bytes() for path in sorted((folder / name).iterdir())})
    wanted = {"some-gpu-%s.svg" % name for name in ("layers", "layers-fp16-last", "grid", "fft", "roofline")}
    if set(pictures[0]) != wanted:
        yield "the pictures are %s, not %s" % (sorted(pictures[0]), sorted(wanted))
    yield from work_faults()
    yield from ("%s is no picture" % name for name, data in pictures[0].items()
                if not data.rstrip().endswith(b"</svg>"))
    if pictures[0] != pictures[1]:
        yield "the same results give other pictures"


def main():
    if WHAT == "pictures" and importlib.util.find_spec("matplotlib") is None:
        print("matplotlib is not installed")
        return 77
    with tempfile.TemporaryDirectory() as directory:
        results = Path(directory, "results", "some-gpu")
        results.mkdir(parents=True)
        write_results(results)
        if WHAT == "pictures":
            found = list(picture_faults(results, Path(directory)))
        else:
            found = list(table_faults(results.parent, Path(directory)))
    print("\n".join(found) or "results: good")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
