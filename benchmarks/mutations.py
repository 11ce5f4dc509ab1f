"""Random damage to files, for ``benchmarks.fuzz``."""

import copy
import json
import os
import struct

import numpy as np

# JSON values that may trip up code that expects something else.
STRANGE = (
    *(None, True, False, 0, -1, 1, 7, 2**31, 2**63, 2**64, 10**12, -(10**30), 10**400),
    *(0.5, -0.0, 1e308, float("nan"), float("inf")),
    *("", "x", "../../x", "/dev/zero", "a\0b", "\ud800", "line\nline", "9" * 5000),
    *("it's", "--load_path", "m:f", "\x1b[2J"),
    *([], [[]], [1, 2], ["x"], {}, {"tensor": "x"}, {"a": {}}, [None] * 300),
)
WRONG_TYPES = "F64", "F16", "BF16", "I8", "U64", "BOOL", "F8_E4M3", "x"
WRONG_SHAPES = [], [0], [1], [10**12], [2**63, 2], [0, 2**62, 2**62], [-1], "x", [1.5]


def damage_bytes(data, rng) -> bytes:
    """Returns bytes with some of them flipped, cut off, overwritten or inserted."""
    data = bytearray(data)
    kind, place = rng.randrange(6), rng.randrange(len(data))
    if kind == 0:
        for _ in range(rng.choice([1, 1, 1, 10])):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del data[place:]
    elif kind == 2:
        data[place:place] = rng.randbytes(rng.choice([1, 8, 1000]))
    elif kind == 3:
        source = rng.randrange(len(data))
        data[place : place + 64] = data[source : source + 64]
    elif kind == 4:  # a wrong length of a tensor file's header
        data[:8] = struct.pack("<Q", rng.randrange(2 ** rng.choice([8, 16, 32, 63])))
    else:
        data[place:place] = data[: rng.randrange(200)]
    return bytes(data)


def places_in(values) -> list:
    """Returns (container, key) of all values inside a JSON value."""
    places, found = [(None, None, values)], []
    while places:
        *place, value = places.pop()
        found.append(tuple(place))
        if isinstance(value, dict):
            places += [(value, key, child) for key, child in value.items()]
        elif isinstance(value, list):
            places += [(value, i, child) for i, child in enumerate(value)]
    return found[1:]


def damage_json(values, rng) -> str:
    """Returns the text of JSON values with one to three changes in them."""
    values = copy.deepcopy(values)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if places := places_in(values):
            change(places, rng)
    text = json.dumps(values)
    kind = rng.randrange(40)
    if kind == 0:  # a name that occurs twice
        text = text.replace("{", '{"a": 1, "a": [], ', 1)
    elif kind == 1:
        depth = rng.choice([20, 31, 40, 254, 100_000])
        text = text.replace(": ", f': {"[" * depth}{"]" * depth}, "y": ', 1)
    elif kind == 2:
        text = damage_bytes(text.encode(), rng).decode(errors="replace")
    return text


def damage_values(data, rng) -> bytes:
    """Returns a JSON file with changes in it."""
    return damage_json(json.loads(data), rng).encode(errors="replace")


def change(places, rng) -> None:
    """Changes JSON values at one of ``places``, drawn at random."""
    container, key = rng.choice(places)
    other_container, other_key = rng.choice(places)
    kind = rng.randrange(7)
    if kind < 3:
        container[key] = copy.deepcopy(rng.choice(STRANGE))
    elif kind == 3:
        container[key] = copy.deepcopy(other_container[other_key])
    elif kind == 4:
        del container[key]
    elif kind == 5:
        for _ in range(rng.choice([1, 5, 30, 100])):
            container[key] = rng.choice([[container[key]], {"x": container[key]}])
    elif isinstance(container, dict):
        container[rng.choice(["x", "", f"{key}/", other_key])] = container.pop(key)
    else:
        container.extend([container[key]] * rng.choice([1, 200]))


def split_tensors(data) -> tuple:
    """Returns the header, as JSON values, and the rest of a safetensors file."""
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    header["__metadata__"]["json"] = json.loads(header["__metadata__"]["json"])
    return header, data[8 + size :]


def join_tensors(header, rest) -> bytes:
    """Returns a safetensors file; the header's metadata is text or JSON values."""
    metadata = header["__metadata__"]["json"]
    text = metadata if isinstance(metadata, str) else json.dumps(metadata)
    header = header | {"__metadata__": {"json": text}}
    encoded = json.dumps(header).encode()
    return struct.pack("<Q", len(encoded)) + encoded + rest


def damage_metadata(data, rng) -> bytes:
    """Returns a safetensors file with changes in its metadata."""
    header, rest = split_tensors(data)
    header["__metadata__"]["json"] = damage_json(header["__metadata__"]["json"], rng)
    return join_tensors(header, rest)


def damage_tensors(data, rng) -> bytes:
    """Returns a safetensors file with tensors changed, swapped, renamed or replaced."""
    header, rest = split_tensors(data)
    names = [name for name in header if name != "__metadata__"]
    name, other = rng.choice(names), rng.choice(names)
    tensor = header[name]
    kind = rng.randrange(8)
    if kind == 0:
        tensor["dtype"] = rng.choice(WRONG_TYPES)
    elif kind == 1:
        tensor["shape"] = rng.choice(WRONG_SHAPES)
    elif kind == 2:
        tensor["data_offsets"] = [
            rng.choice([0, -1, 8, 10**12]),
            rng.choice([4, 2**63]),
        ]
    elif kind == 3:
        header[name], header[other] = header[other], header[name]
    elif kind == 4:
        header[rng.choice(["x", "", other])] = header.pop(name)
    elif kind == 5:  # the same bytes as another type of the same size
        same = [{"F32", "I32", "U32"}, {"F64", "I64", "U64"}, {"BOOL", "I8", "U8"}]
        kinds = next((x for x in same if tensor["dtype"] in x), {"F32"})
        tensor["dtype"] = rng.choice(sorted(kinds))
    elif kind == 6 and len(tensor["shape"]):  # the same bytes in another shape
        tensor["shape"] = [int(np.prod(tensor["shape"]))]
    else:  # other numbers
        begin, end = tensor["data_offsets"]
        size = end - begin
        new = rng.choice([rng.randbytes(size), b"\xff" * size, bytes(size)])
        rest = rest[:begin] + new + rest[end:]
    return join_tensors(header, rest)


def put_special_file(path, rng) -> None:
    """Replaces a file with a folder, a pipe, a link or an empty file."""
    if os.path.lexists(path):
        os.unlink(path)
    kind = rng.randrange(6)
    if kind == 0:
        os.mkdir(path)
    elif kind == 1:
        os.mkfifo(path)
    elif kind == 2:
        os.symlink("nowhere", path)
    elif kind == 3:
        os.symlink("/dev/zero", path)
    elif kind == 4:
        os.symlink(".", path)
    else:
        open(path, "w").close()
