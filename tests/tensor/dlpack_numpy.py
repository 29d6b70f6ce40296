# SPDX-License-Identifier: Apache-2.0
"""Arrays of NumPy in Tenon and back by DLPack, through ctypes. Prints TAP. Argument: the shared library."""
import ctypes as c
import gc
import sys

import numpy as np

lib = c.CDLL(sys.argv[1])
py = c.pythonapi
VERSIONED = tuple(int(x) for x in np.__version__.split(".")[:2]) >= (2, 1)

# --- DLPack, as its specification lays it out ---


class Tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("device_type", c.c_int32), ("device_id", c.c_int32), ("ndim", c.c_int32), ("code", c.c_uint8),
                ("bits", c.c_uint8), ("lanes", c.c_uint16), ("shape", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64)),
                ("byte_offset", c.c_uint64)]


Deleter = c.CFUNCTYPE(None, c.c_void_p)


class Plain(c.Structure):
    _fields_ = [("tensor", Tensor), ("manager", c.c_void_p), ("deleter", c.c_void_p)]


class Versioned(c.Structure):
    _fields_ = [("major", c.c_uint32), ("minor", c.c_uint32), ("manager", c.c_void_p), ("deleter", c.c_void_p), ("flags", c.c_uint64),
                ("tensor", Tensor)]


py.PyCapsule_GetPointer.restype = c.c_void_p
py.PyCapsule_GetPointer.argtypes = [c.py_object, c.c_char_p]
py.PyCapsule_SetName.argtypes = [c.py_object, c.c_char_p]
py.PyCapsule_New.restype = c.py_object
py.PyCapsule_New.argtypes = [c.c_void_p, c.c_char_p, c.c_void_p]
NAMES = {False: (b"dltensor", b"used_dltensor", Plain), True: (b"dltensor_versioned", b"used_dltensor_versioned", Versioned)}


class Count:
    """Stands in front of the deleter of a managed tensor."""

    def __init__(self, address, versioned):
        managed = NAMES[versioned][2].from_address(address)
        original = Deleter(managed.deleter)
        self.n = 0

        def delete(at):
            self.n += 1
            original(at)

        self.function = Deleter(delete)
        managed.deleter = c.cast(self.function, c.c_void_p).value


# --- Tenon ---


class Handle(c.Structure):
    _fields_ = [("id", c.c_uint64)]


class Error(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("code", c.c_int32), ("n_causes", c.c_uint32), ("used", c.c_uint32),
                ("spill_size", c.c_uint32), ("spill", c.c_void_p), ("text", c.c_char * 224)]


lib.tn_error_message.restype = c.c_char_p
lib.tn_dtype_name.restype = c.c_char_p
lib.tn_tensor_data.restype = c.c_void_p
for name in "tn_tensor_data tn_tensor_dtype tn_tensor_rank tn_tensor_unref tn_eager_session_destroy".split():
    getattr(lib, name).argtypes = [c.c_void_p]


class Refused(Exception):
    pass


def call(name, *args):
    err = Error(struct_size=c.sizeof(Error))
    status = getattr(lib, name)(*args, c.byref(err))
    text = lib.tn_error_message(c.byref(err)).decode()
    lib.tn_error_clear(c.byref(err))
    if status != 0:
        raise Refused(text)


def take(array, versioned):
    """The managed tensor of an array: its address, and the count of its deletions."""
    name, used, _ = NAMES[versioned]
    capsule = array.__dlpack__(max_version=(1, 0)) if versioned else array.__dlpack__()
    address = py.PyCapsule_GetPointer(capsule, name)
    py.PyCapsule_SetName(capsule, used)
    return address, Count(address, versioned)


def suffix(versioned):
    return "_versioned" if versioned else ""


def tensor_from(array, versioned=False):
    address, count = take(array, versioned)
    tensor = c.c_void_p()
    call("tn_tensor_from_dlpack" + suffix(versioned), c.c_void_p(address), c.byref(tensor))
    return tensor, count


class Out:
    """What NumPy calls to get a managed tensor."""

    def __init__(self, address, versioned):
        self.address, self.versioned = address, versioned

    def __dlpack__(self, **_):
        return py.PyCapsule_New(self.address, NAMES[self.versioned][0], None)

    def __dlpack_device__(self):
        return (1, 0)


def array_of(function, *args, versioned=False):
    managed = c.c_void_p()
    call(function + suffix(versioned), *args, c.byref(managed))
    count = Count(managed.value, versioned)
    return np.from_dlpack(Out(managed.value, versioned)), count


def address_of(array):
    return array.__array_interface__["data"][0]


def same(found, wanted, what):
    if not found == wanted:
        raise AssertionError(f"{what} is {found!r}, wanted {wanted!r}")


TYPES = "float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 complex64 complex128 bool".split()


def types():
    for name in TYPES:
        array = np.arange(24).reshape(2, 3, 4).astype(name)
        try:
            array.__dlpack__()
        except (BufferError, TypeError):
            if name == "bool":  # before NumPy 1.25
                continue
            raise
        yield name, array


# --- tests ---


def every_type_comes_in_where_it_is():
    for name, array in types():
        for versioned in {False, VERSIONED}:
            before = sys.getrefcount(array)
            tensor, count = tensor_from(array, versioned)
            same(lib.tn_dtype_name(lib.tn_tensor_dtype(tensor)).decode(), {"float16": "half"}.get(name, name), "dtype")
            same(lib.tn_tensor_data(tensor), address_of(array), "address of " + name)
            same(lib.tn_tensor_rank(tensor), 3, "rank")
            same(count.n, 0, "deletions")
            lib.tn_tensor_unref(tensor)
            same(count.n, 1, "deletions of " + name)
            same(sys.getrefcount(array), before, "references to " + name)


def every_type_goes_out_where_it_is():
    for name, array in types():
        for versioned in {False, VERSIONED}:
            wanted, at = array.copy(), address_of(array)
            tensor, given = tensor_from(array, versioned)
            back, count = array_of("tn_tensor_to_dlpack", tensor, versioned=versioned)
            same(address_of(back), at, "address of " + name)
            same(str(back.dtype), name, "dtype")
            array[0, 0, 0] = 1
            same(back[0, 0, 0], array[0, 0, 0], "what was written afterwards")
            wanted[0, 0, 0] = 1
            lib.tn_tensor_unref(tensor)
            same((given.n, count.n), (0, 0), "deletions while there is an array")
            same(back.tolist(), wanted.tolist(), "elements of " + name)
            back = None
            gc.collect()
            same((given.n, count.n), (1, 1), "deletions")


def operations_read_and_give_arrays():
    session = c.c_void_p()
    call("tn_eager_session_create", None, c.byref(session))
    counts, arrays = [], []
    for name, array in types():
        x, y, z = Handle(), Handle(), Handle()
        op = b"LogicalOr" if name == "bool" else b"Mul"
        for versioned in {False, VERSIONED}:
            address, count = take(array, versioned)
            call("tn_eager_from_dlpack" + suffix(versioned), session, c.c_void_p(address), c.byref(x))
            inputs, n = (Handle * 2)(x, x), c.c_size_t()
            call("tn_eager_call", session, op, None, c.c_size_t(0), inputs, c.c_size_t(2), c.byref(y), c.c_size_t(1), c.byref(n))
            tensor = c.c_void_p()
            call("tn_eager_tensor", session, y, c.byref(tensor))
            back, deletions = array_of("tn_eager_to_dlpack", session, y, versioned=versioned)
            same(address_of(back), lib.tn_tensor_data(tensor), "address of the product in " + name)
            lib.tn_tensor_unref(tensor)
            wanted = array | array if name == "bool" else array * array
            same(back.tolist(), wanted.tolist(), "product in " + name)
            same(back.flags.writeable, False, "whether it may be written")
            arrays.append((back, wanted))
            counts.append((count, deletions))
            again, deletions = array_of("tn_eager_to_dlpack", session, x, versioned=versioned)
            same(address_of(again), address_of(array), "address of an input")
            arrays.append((again, array))
            counts.append((count, deletions))
    lib.tn_eager_session_destroy(session)
    for back, wanted in arrays:
        same(back.tolist(), wanted.tolist(), "elements after the session is gone")
    arrays = back = again = None
    gc.collect()
    for given, taken in counts:
        same((given.n, taken.n), (1, 1), "deletions")


def the_sessions_thread_gives_arrays_back():
    session, h = c.c_void_p(), Handle()
    call("tn_eager_session_create", None, c.byref(session))
    array = np.ones(1000, np.float32)
    before = sys.getrefcount(array)
    counts = []
    for _ in range(200):
        address, count = take(array, False)
        counts.append(count)
        call("tn_eager_from_dlpack", session, c.c_void_p(address), c.byref(h))
        call("tn_eager_release", session, h)
    lib.tn_eager_session_destroy(session)
    same([count.n for count in counts], [1] * 200, "deletions")
    same(sys.getrefcount(array), before, "references")


def only_row_major_arrays_come_in():
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    bad = [base.T, base[:, ::2], base[::2], base[::-1], base[:, 1:4], np.asfortranarray(base),
           np.lib.stride_tricks.as_strided(base, (3, 2), (0, 4))]
    for array in bad:
        address, count = take(array, False)
        tensor = c.c_void_p()
        try:
            call("tn_tensor_from_dlpack", c.c_void_p(address), c.byref(tensor))
        except Refused as refused:
            if "stride" not in str(refused):
                raise
        else:
            raise AssertionError(f"strides {array.strides} were taken")
        same((count.n, tensor.value), (0, None), "what a refused call did")
        count.function(address)  # it is the caller's
    good = [base[1:3], base[:, 2:3][:1], base.reshape(1, 24).T, base[2, 3:], np.float32(7) + base[:0], np.array(5.0), base[:1][::-1]]
    for array in good:
        tensor, count = tensor_from(array)
        if array.size > 0:
            same(lib.tn_tensor_data(tensor), address_of(array), "address")
        back, _ = array_of("tn_tensor_to_dlpack", tensor)
        same((back.shape, back.tolist()), (array.shape, array.tolist()), "array")
        lib.tn_tensor_unref(tensor)


def addresses_that_are_not_aligned_are_refused():
    array = np.zeros(41, np.uint8)
    array = array[(1 - address_of(array)) % 8:][:32].view(np.float64)
    address, count = take(array, False)
    tensor = c.c_void_p()
    try:
        call("tn_tensor_from_dlpack", c.c_void_p(address), c.byref(tensor))
    except Refused as refused:
        if "aligned" not in str(refused):
            raise
    else:
        raise AssertionError("it was taken")
    count.function(address)


def read_only_arrays_stay_read_only():
    if not VERSIONED:
        return "NumPy before 2.1"
    array = np.arange(6, dtype=np.float32)
    array.flags.writeable = False
    tensor, count = tensor_from(array, True)
    back, _ = array_of("tn_tensor_to_dlpack", tensor, versioned=True)
    same(back.flags.writeable, False, "whether it may be written")
    try:
        array_of("tn_tensor_to_dlpack", tensor)
    except Refused as refused:
        if "read-only" not in str(refused):
            raise
    else:
        raise AssertionError("it went out without a flag")
    lib.tn_tensor_unref(tensor)
    same(count.n, 0, "deletions")
    back = None
    gc.collect()
    same(count.n, 1, "deletions")
    array = np.arange(6, dtype=np.float32)
    tensor, count = tensor_from(array, True)
    back, _ = array_of("tn_tensor_to_dlpack", tensor, versioned=True)
    back[3] = 77
    same(array[3], 77, "what was written")
    lib.tn_tensor_unref(tensor)


tests = [every_type_comes_in_where_it_is, every_type_goes_out_where_it_is, operations_read_and_give_arrays,
         the_sessions_thread_gives_arrays_back, only_row_major_arrays_come_in, addresses_that_are_not_aligned_are_refused,
         read_only_arrays_stay_read_only]
for number, test in enumerate(tests, 1):
    title = f"{number} - DLPack and NumPy {np.__version__}: {test.__name__.replace('_', ' ')}"
    try:
        skipped = test()
    except Exception as problem:  # pylint: disable=broad-except
        print(f"not ok {title}\n# {type(problem).__name__}: {problem} (line {problem.__traceback__.tb_next.tb_lineno})", flush=True)
    else:
        print(f"ok {title}" + (f" # SKIP {skipped}" if skipped else ""), flush=True)
print(f"1..{len(tests)}")
