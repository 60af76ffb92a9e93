"""def no(): in a docstring"""
import os

def checkout(cart, *,
             # a ) in a comment
             tax=(0.2, "):")) -> dict[str, int]:
    def local():
        pass
    class Local: pass
    return {"def": 1}

class Cart(Base[int],
           metaclass=Meta):
    x = """
def no():
    pass
"""

    @property
    def total(self): return 1

    async def pay(
        self,
    ):
        if self:
            return f"{self['x']}"

    class Meta:
        y = 1
# comment at the left

if os.name == "nt":
    def windows():
        pass
else:
    class Posix:
        def run(self): \
            return 1

broken = [1, 2
def after():
    pass
