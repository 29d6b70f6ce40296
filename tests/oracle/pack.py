#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs recorded cases into one archive a family, NAME.zip beside this file.

    python3 pack.py CASES [--ops ops.txt] [--out DIR] [--all] [--without FAMILY]...
    python3 pack.py FOUND --one found

CASES is a folder with an index.json, as the generators write it. Taken are the cases whose ops are all claimed (listed in
--ops), or all with --all, but for the families --without. FOUND is a folder of such folders, one for each fault that was found:
with --one NAME all that is in them, and in the archive NAME.zip that is there already, goes into that archive. An archive holds three files, deflated:

    index.json   the cases' entries, as in CASES; each with `graph`: [offset, size] of its GraphDef in `graphs`, and
                 `arrays`: for each array (`s0/feed/x:0`) [offset, size] of its .npy file in `arrays`
    graphs       GraphDefs, one after another
    arrays       .npy files, one after another; equal ones are stored once

Many small files in one stream take a quarter of the room of the same files one by one. The same cases give the same bytes
with the same zlib: entries are sorted and times fixed. Needs nothing but Python 3.
"""
import argparse
import json
import os
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))


def claimed_ops(path):
    with open(path, encoding="utf-8") as f:
        return {op for line in f for op in line.split("#", 1)[0].split()}


class Store:
    """Pieces one after another; equal pieces share their place."""

    def __init__(self):
        self.pieces, self.places, self.size = [], {}, 0

    def add(self, data):
        if data not in self.places:
            self.places[data] = [self.size, len(data)]
            self.pieces.append(data)
            self.size += len(data)
        return self.places[data]

    def bytes(self):
        return b"".join(self.pieces)


def read_arrays(path, store):
    with zipfile.ZipFile(path) as npz:
        return {name[:-len(".npy")]: store.add(npz.read(name)) for name in sorted(npz.namelist())}


def write_entry(archive, name, data):
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    archive.writestr(info, data, zipfile.ZIP_DEFLATED, 9)


def piece(data, place):
    return data[place[0]:place[0] + place[1]]


def write_archive(path, packed, graphs, arrays):
    with zipfile.ZipFile(path + ".new", "w") as archive:
        lines = ",\n".join(json.dumps(e, sort_keys=True, separators=(",", ":")) for e in packed)
        write_entry(archive, "index.json", "[\n" + lines + "\n]\n")
        write_entry(archive, "graphs", graphs.bytes())
        write_entry(archive, "arrays", arrays.bytes())
    os.replace(path + ".new", path)


def pack(cases, family, entries, out):
    graphs, arrays, packed = Store(), Store(), []
    for entry in sorted(entries, key=lambda e: e["id"]):
        with open(os.path.join(cases, entry["id"] + ".pb"), "rb") as f:
            graph = graphs.add(f.read())
        place = read_arrays(os.path.join(cases, entry["id"] + ".npz"), arrays)
        packed.append(dict(entry, graph=graph, arrays=place))
    path = os.path.join(out, family + ".zip")
    write_archive(path, packed, graphs, arrays)
    return os.path.getsize(path)


def pack_one(found, name, out):
    """The cases of each folder in `found`, named after it, beside those that the archive has under other names."""
    path = os.path.join(out, name + ".zip")
    graphs, arrays, packed = Store(), Store(), {}
    if os.path.exists(path):
        with zipfile.ZipFile(path) as old:
            old_graphs, old_arrays = old.read("graphs"), old.read("arrays")
            for e in json.loads(old.read("index.json")):
                e["graph"] = graphs.add(piece(old_graphs, e["graph"]))
                e["arrays"] = {k: arrays.add(piece(old_arrays, place)) for k, place in e["arrays"].items()}
                packed[e["id"]] = e
    for subject in sorted(os.listdir(found)):
        folder = os.path.join(found, subject)
        with open(os.path.join(folder, "index.json"), encoding="utf-8") as f:
            index = json.load(f)
        for e in index:
            with open(os.path.join(folder, e["id"] + ".pb"), "rb") as f:
                graph = graphs.add(f.read())
            place = read_arrays(os.path.join(folder, e["id"] + ".npz"), arrays)
            case = subject + "/" + os.path.basename(e["id"])
            packed[case] = dict(e, id=case, family=name, graph=graph, arrays=place)
    write_archive(path, [packed[k] for k in sorted(packed)], graphs, arrays)
    print("%-16s %5d cases %9d bytes" % (name, len(packed), os.path.getsize(path)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", help="folder with index.json")
    parser.add_argument("--ops", default=os.path.join(HERE, "ops.txt"), help="list of claimed ops")
    parser.add_argument("--out", default=HERE, help="folder for the archives")
    parser.add_argument("--all", action="store_true", help="all cases, claimed or not")
    parser.add_argument("--without", action="append", default=[], metavar="FAMILY", help="leave this family out")
    parser.add_argument("--one", metavar="NAME", help="all cases of all folders in CASES into this one archive")
    args = parser.parse_args()
    if args.one:
        pack_one(args.cases, args.one, args.out)
        return

    with open(os.path.join(args.cases, "index.json"), encoding="utf-8") as f:
        index = json.load(f)
    claimed = claimed_ops(args.ops)
    unknown = claimed - {op for e in index for op in e["ops"]}
    if unknown:
        print("no case has: " + " ".join(sorted(unknown)), file=sys.stderr)

    families, n_bytes, n_cases = {}, 0, 0
    for entry in index:
        if entry["family"] not in args.without and (args.all or claimed.issuperset(entry["ops"])):
            families.setdefault(entry["family"], []).append(entry)
    if os.path.samefile(args.out, HERE) and not args.all:
        for old in sorted(os.listdir(HERE)):
            if old.endswith(".zip") and old[:-len(".zip")] not in families and old != "found.zip":
                os.remove(os.path.join(HERE, old))
    for family, entries in sorted(families.items()):
        size = pack(args.cases, family, entries, args.out)
        print("%-16s %5d cases %9d bytes" % (family, len(entries), size))
        n_bytes, n_cases = n_bytes + size, n_cases + len(entries)
    print("%-16s %5d cases %9d bytes" % ("total", n_cases, n_bytes))


if __name__ == "__main__":
    main()
