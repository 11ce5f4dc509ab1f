"""Describes arguments in the API reference by their annotations, as --help does."""

import ast
import re

import griffe

JOINT = re.compile(r"^    (\w+(?:, \w+)+):(.*(?:\n     +\S.*)*)", re.M)


def read(annotation, modules):
    """Returns the type and the meaning of an ``Annotated``, or of an alias of one."""
    if isinstance(annotation, (griffe.ExprName, griffe.ExprAttribute)):
        try:
            annotation = modules[annotation.canonical_path].value
        except (KeyError, AttributeError):  # no constant of this package
            return annotation, None
    if getattr(annotation, "canonical_name", None) != "Annotated":
        return annotation, None
    kind, *notes = annotation.slice.elements
    texts = [ast.literal_eval(x) for x in map(str, notes) if x[0] in "'\""]
    meaning = texts[-1] if texts else read(kind, modules)[1]
    defaults = [str(x)[len("Default(") : -1] for x in notes if "Default(" in str(x)]
    return kind, f"{meaning}. Default: {defaults[0]}" if defaults else meaning


def split_joint(docstring):
    """Gives each of several arguments that share a text, ``a, b: text``, its own."""
    if docstring:
        docstring.value = JOINT.sub(
            lambda x: "\n".join(f"    {name}:{x[2]}" for name in x[1].split(", ")),
            docstring.value,
        )


def describe(owner, title, items, modules):
    """Adds a section with the meanings of arguments to a docstring without one."""
    lines = []
    for item in items:
        kind, meaning = read(item.annotation, modules)
        if meaning:
            item.annotation = kind
            lines.append(f"    {item.name}: {meaning}")
    if lines and owner.docstring and f"{title}:\n" not in owner.docstring.value:
        owner.docstring.value += "\n\n" + "\n".join([f"{title}:", *lines])


class Annotations(griffe.Extension):
    def on_function(self, *, func, loader, **others):
        if func.name == "learn" and "run" in func.parameters:
            del func.parameters["run"]  # The decorator passes it.
        split_joint(func.docstring)
        describe(func, "Args", func.parameters, loader.modules_collection)

    def on_class(self, *, cls, loader, **others):
        split_joint(cls.docstring)
        fields = cls.attributes.values()
        describe(cls, "Attributes", fields, loader.modules_collection)
