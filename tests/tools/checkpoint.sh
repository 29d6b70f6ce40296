#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tenon checkpoint: list, show, diff, export, import. Prints TAP. Tensors are made by tenon itself or by NumPy, if that is
# installed.
. "${TENON_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tools/tool_kit.sh" checkpoint
half=$src/tests/data/saved/half_plus_two
vars=$half/variables/variables
key=a/.ATTRIBUTES/VARIABLE_VALUE

has() { grep -qE -e "$1" out; }
told() { grep -qE -e "$1" err; }
quiet() { [ ! -s out ]; }

# ---- list ----

run 0 "$tenon" checkpoint list "$vars" && has "^ *4 B  float32  \[\]  $key$" && has '^3 tensors with [0-9]+ B in .*variables \(object-based, version 2\)$'
is 'list: size, type, shape and key'
run 0 "$tenon" checkpoint list "$vars" --paths && has '  = a$' && run 0 "$tenon" checkpoint list "$vars.index" 'b/*' && ! has '  a/' &&
  has '^1 tensor with 4 B '
is 'list: object paths; patterns; the name of the index'
run 1 "$tenon" checkpoint list nothing && told '^tenon: NOT_FOUND: .*nothing' && run 1 "$tenon" checkpoint list . && told '^tenon: NOT_FOUND: '
is 'list: no such checkpoint'
head -c 100 "$vars.index" >cut.index
run 1 "$tenon" checkpoint list cut && told '^tenon: DATA_LOSS: .*cut.index' && quiet
is 'list: a damaged index'

# ---- show ----

run 0 "$tenon" checkpoint show "$vars" "$key" && has "^$key  float32 \[\]  4 B$" && has '^0\.5$' && has '^min +0\.5$' && has '^std +0$'
is 'show: value and statistics'
run 0 "$tenon" checkpoint show "$vars" a b --no-histogram && has '^0\.5$' && has '^2\.0$' && has '^  = b$' && ! has '#'
is 'show: keys may be object paths'
run 1 "$tenon" checkpoint show "$vars" c && told '^tenon: NOT_FOUND: '
is 'show: no such key'
run 2 "$tenon" checkpoint show "$vars" && says 'expects PREFIX KEY' && run 2 "$tenon" checkpoint && run 2 "$tenon" checkpoint lst x && says "did you mean 'list'" &&
  run 2 "$tenon" checkpoint show --jsn x y && says "did you mean '--json'"
is 'wrong arguments'

# ---- export and import ----

run 0 "$tenon" checkpoint export "$vars" half.npz && has '^half.npz: 3 arrays with ' && run 0 "$tenon" checkpoint import half.npz again &&
  run 0 "$tenon" checkpoint diff "$vars" again && has '^3 equal, 0 differ'
is 'export and import give an equal checkpoint, with its object graph'
run 0 "$tenon" run "$half" --checkpoint again --feed x='[8]' --fetch y && has '^\[6\.\]$'
is 'the model takes its variables from it'
run 1 "$tenon" checkpoint import half.npz shards/x && told '^tenon: NOT_FOUND: .*shards' &&
  run 0 "$tenon" checkpoint import half.npz two --shards 2 && [ -f two.data-00001-of-00002 ] && run 0 "$tenon" checkpoint diff again two
is 'import into a missing folder; --shards'
run 2 "$tenon" checkpoint export "$vars" half.zip && says 'must end in .npz' && run 2 "$tenon" checkpoint import half.npz in/ && says 'expected a prefix' &&
  run 2 "$tenon" checkpoint import half.npz x --dtype a && run 2 "$tenon" checkpoint import half.npz x --dtype a=float99 && says "there is no type 'float99'" &&
  run 2 "$tenon" checkpoint import half.npz x --shards 0
is 'export and import: wrong arguments'
run 1 "$tenon" checkpoint export "$vars" none.npz 'c*' && says 'no tensor to export' && [ ! -e none.npz ]
is 'export: no key matches'

# ---- diff ----

cat >vars.pbtxt <<'END'
node { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { } } }
  attr { key: "shared_name" value { s: "v" } } }
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "set" op: "AssignVariableOp" input: "v" input: "x" attr { key: "dtype" value { type: DT_FLOAT } } }
END
run 0 "$tenon" run vars.pbtxt --feed x=1 --target set --save one && run 0 "$tenon" run vars.pbtxt --feed x=1.5 --target set --save more &&
  run 1 "$tenon" checkpoint diff one more && has '^~  v  float32 \[\]: 1 of 1 differ, by at most 0\.5$'
is 'diff: values, exit status 1'
run 0 "$tenon" checkpoint diff one more --atol 0.5 && run 1 "$tenon" checkpoint diff one more --atol 0.4 && run 0 "$tenon" checkpoint diff one more --rtol 0.34
is 'diff: tolerances'
run 1 "$tenon" checkpoint diff one "$vars" && has '^-  v ' && has "^\+  $key " && run 0 "$tenon" checkpoint diff one "$vars" 'nothing*'
is 'diff: keys of one side only'
run 2 "$tenon" checkpoint diff one nothing && told '^tenon: NOT_FOUND: '
is 'diff: trouble, exit status 2'

# ---- NumPy ----

if python3 -c 'import numpy' 2>/dev/null; then
  python3 - <<'END' >py 2>&1
import numpy as np
r = np.random.default_rng(7)
np.savez("in.npz", **{"dense/kernel": r.normal(size=(40, 50)).astype("f4"), "count": np.int64(12), "words": np.array([b"a", b"bcd"]),
                      "bits": np.array([0x3f80, 0x4000], "u2"), "odd": np.array([1, np.nan, np.inf, 0], "f8"), "none": np.zeros((2, 0), "i2"),
                      "flags": np.array([True, False, True]), "z": np.array([3 + 4j], "c8"), "small": np.arange(12, dtype="i4") % 3})
END
  run 0 "$tenon" checkpoint import in.npz np --dtype 'bi*=bfloat16' && has '^np: 9 tensors with ' && run 0 "$tenon" checkpoint list np --json && python3 - <<'END' >py 2>&1
import json
t = {x["key"]: x for x in json.load(open("out"))["tensors"]}
assert t["bits"]["dtype"] == "bfloat16" and t["dense/kernel"]["shape"] == [40, 50] and t["words"]["dtype"] == "string" and t["count"]["shape"] == []
END
  is 'import: arrays of NumPy, with a type that it lacks'
  run 0 "$tenon" checkpoint export np out.npz && run 0 "$tenon" checkpoint import out.npz np2 && run 0 "$tenon" checkpoint diff np np2 && python3 - <<'END' >py 2>&1
import numpy as np
a, b = np.load("in.npz"), np.load("out.npz")
assert set(a.files) == set(b.files)
for k in a.files:
    x, y = a[k], b[k]
    if k == "bits": y = y.view("u2")
    assert x.shape == y.shape and x.tobytes() == y.tobytes(), k
END
  is 'export: NumPy reads the same; bfloat16 as its bits'
  run 0 "$tenon" checkpoint show np dense/kernel --json && python3 - <<'END' >py 2>&1
import json, numpy as np
s = json.load(open("out"))[0]
x = np.load("in.npz")["dense/kernel"].astype("f8")
for k, v in {"min": x.min(), "max": x.max(), "mean": x.mean(), "std": x.std()}.items(): assert np.isclose(s["statistics"][k], v), k
limits, counts = s["histogram"]["limits"], s["histogram"]["counts"]
assert counts == np.histogram(x, limits)[0].tolist() and sum(counts) == x.size and 8 <= len(counts) <= 24
END
  is 'show: the statistics and the histogram are those of NumPy'
  run 0 "$tenon" checkpoint show np odd && has '^NaN +1 \(25\.00 %\)$' && has '^infinite +1 ' && has '^zeros +1 ' && run 0 "$tenon" checkpoint show np small &&
    [ "$(grep -c '#' out)" = 3 ] && run 0 "$tenon" checkpoint show np z && has '^min of \|x\| +5$' && run 0 "$tenon" checkpoint show np none words flags &&
    has '^2 strings of 1 to 3 bytes'
  is 'show: NaN, integers, complex numbers, strings, nothing at all'
  run 0 "$tenon" checkpoint export np out.npz --compress && [ "$(python3 -c 'import zipfile; print(zipfile.ZipFile("out.npz").infolist()[0].compress_type)')" = 8 ]
  is 'export --compress'
else
  for name in 'import: arrays of NumPy, with a type that it lacks' 'export: NumPy reads the same; bfloat16 as its bits' \
    'show: the statistics and the histogram are those of NumPy' 'show: NaN, integers, complex numbers, strings, nothing at all' 'export --compress'; do
    skip "$name" 'NumPy is not here'
  done
fi

# A string that ends in a zero byte: NumPy would not return it.
cat >strings.pbtxt <<'END'
node { name: "s" op: "VarHandleOp" attr { key: "dtype" value { type: DT_STRING } } attr { key: "shape" value { shape { } } }
  attr { key: "shared_name" value { s: "s" } } }
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_STRING } } }
node { name: "set" op: "AssignVariableOp" input: "s" input: "x" attr { key: "dtype" value { type: DT_STRING } } }
END
printf 'a\000b\000' >bytes
run 0 "$tenon" run strings.pbtxt --feed x=@bytes --target set --save strings && run 0 "$tenon" checkpoint export strings s.npz &&
  told "^key 's': 1 of 1 strings end in zero bytes, which NumPy does not keep: written without them$" && run 0 "$tenon" checkpoint import s.npz cut2 &&
  run 0 "$tenon" checkpoint show cut2 s && has "^b'a.x00b'$"
is 'export: a string that ends in a zero byte is written without it, with a warning'
rm -f s.npz
run 1 "$tenon" checkpoint export strings s.npz --skip && told 'left out$' && [ ! -e s.npz ]
is 'export --skip leaves it out'

# ---- the manual page ----

sed 's/\\-/-/g' "$src/docs/tenon.1" >page && good=yes
for command in checkpoint freeze run; do
  grep -q "^\.SS tenon $command" page || good="$command"
  for option in $("$tenon" $command --help | grep -oE -e '--[a-z-]+' | sort -u); do grep -q -e "$option" page || good="$option"; done
done
[ "$good" = yes ] || echo "# $good is missing"
[ "$good" = yes ]
is 'the manual page names every option'

echo "1..$n"
