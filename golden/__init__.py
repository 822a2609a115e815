"""Golden models: the executable form of ``docs/numerics.md``, in NumPy.

Bit-true models return integers (or float32 whose bit patterns are exact); ``golden.reference`` is
float64 and says how close the bit-true models have to come. Nothing here imports the hardware
description; sizes come from ``hw.config``, which holds no hardware.
"""
