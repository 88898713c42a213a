# Leaves values whose classes lie about themselves. want: code_value_invalid
class Text(str):
    def __str__(self): return "lies"
    def __hash__(self): return 1
    def __eq__(self, other): return True
    def isascii(self): return True
    def encode(self, *a): raise SystemExit
class Items(dict):
    def items(self): raise SystemExit
context["a"] = Text("\ud800")
context["b"] = Items(x=object())
