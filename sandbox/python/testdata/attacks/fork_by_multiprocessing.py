# Has a pool of processes.
import multiprocessing
try:
    with multiprocessing.Pool(4) as p:
        print("REACHED", p.map(abs, [1]))
except (OSError, ImportError) as e:
    print(e)
