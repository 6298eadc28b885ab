# A Python program that launches kernels through ctypes: in_python.py LIBRARY HISTOGRAMS COLLATZES
import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
library.dose(int(sys.argv[2]), int(sys.argv[3]))
print("done")
