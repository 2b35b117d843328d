"""Prints files, lines, and lines a file (median, 90th percentile, largest) of each folder and of all C++
files.
"""
import statistics

from source_files import FOLDERS, ROOT, source_files


def summary(paths):
    counts = sorted((len(path.read_text(errors="replace").splitlines()), path) for path in paths)
    lines = [count for count, _ in counts]
    ninetieth = lines[min(len(lines) - 1, int(0.9 * len(lines)))]
    largest, where = counts[-1]
    return (f"{len(lines):6} files {sum(lines):8} lines   median {statistics.median(lines):5.0f}   "
            f"90th percentile {ninetieth:5}   largest {largest:5} {where.relative_to(ROOT)}")


if __name__ == "__main__":
    for folder in (*FOLDERS, "all"):
        paths = source_files(folders=FOLDERS if folder == "all" else [folder])
        if paths:
            print(f"{folder:12}{summary(paths)}")
