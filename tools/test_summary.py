#!/usr/bin/env python3
"""Adds up what the test programs wrote: prints the reasons of skips and "N passed, N failed, N skipped".

A GoogleTest program counts by its cases, any other ctest entry as one. Exits 1 where something failed or fewer than FLOOR
cases ran. Needs: Python's standard library.

usage: test_summary.py FOLDER FLOOR      FOLDER has the XML files of GoogleTest and ctest-*.xml of ctest --output-junit
"""
import collections
import pathlib
import sys
import xml.etree.ElementTree as xml


def count_cases(folder):
    """passed, failed, skipped, and how often each reason of a skip was given."""
    passed = failed = skipped = 0
    reasons = collections.Counter()
    programs = set()
    for path in sorted(folder.glob("*.xml")):
        if path.name.startswith("ctest-"):
            continue
        programs.add(path.stem)
        for case in xml.parse(path).getroot().iter("testcase"):
            skip = case.find("skipped")
            if case.get("status") == "notrun":
                continue
            if skip is not None:
                skipped += 1
                reasons[(skip.get("message") or "no reason").strip().split("\n")[-1]] += 1
            elif case.find("failure") is not None:
                failed += 1
            else:
                passed += 1
    for path in sorted(folder.glob("ctest-*.xml")):
        for case in xml.parse(path).getroot().iter("testcase"):
            if case.get("status") == "fail":
                # A program that died wrote no file of its own, or none of the case that it died in.
                failed += 1
                print(f"failed: {case.get('name')} ({path.stem})")
            elif case.get("name") not in programs:
                passed += 1
    return passed, failed, skipped, reasons


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    passed, failed, skipped, reasons = count_cases(pathlib.Path(sys.argv[1]))
    floor = int(sys.argv[2])
    for reason, times in sorted(reasons.items()):
        print(f"skipped {times}: {reason}")
    if passed < floor:
        print(f"error: {passed} cases passed, of which there are at least {floor}: tests were lost")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or passed < floor else 0


if __name__ == "__main__":
    sys.exit(main())
