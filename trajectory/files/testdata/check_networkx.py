"""Reads trajectories with networkx and says what it saw.

    python3 check_networkx.py FOLDER

For each Run*_Sub*.json below the folder: node_link_graph must take it as it is,
give a directed graph without cycles, with the node and edge attributes that are
documented, and the names in .meta.json must be nodes. Each graph is written
anew by node_link_data as FILE.again, for whoever wants to read it back.
Prints "VERSION FILES NODES EDGES".
"""

import json
import pathlib
import sys
import warnings

import networkx as nx

files = nodes = edges = 0
for path in sorted(pathlib.Path(sys.argv[1]).rglob("Run*_Sub*.json")):
    if path.name.endswith(".meta.json"):
        continue
    graph = nx.node_link_graph(json.loads(path.read_text(encoding="utf-8")))
    assert type(graph) is nx.DiGraph, f"{path}: {type(graph)}"
    assert nx.is_directed_acyclic_graph(graph), f"{path}: there is a cycle"
    for name, node in graph.nodes(data=True):
        assert name.startswith(node["type"] + "("), f"{path}: {name} is a {node['type']}"
        assert node["version"] >= 1 and "created" in node and "history" in node, f"{path}: {name}: {node}"
    for source, target, edge in graph.edges(data=True):
        assert edge["relationship"], f"{path}: {source} -> {target}: {edge}"
    meta = json.loads(path.with_suffix(".meta.json").read_text(encoding="utf-8"))
    assert graph.graph["session"] == meta["session"], path
    assert not graph or meta["initial_pt"] in graph, path
    assert all(name in graph for name in meta["current_pt"]), path
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some versions say that a default will change
        again = nx.node_link_data(graph)
    path.with_name(path.name + ".again").write_text(json.dumps(again), encoding="utf-8")
    files, nodes, edges = files + 1, nodes + len(graph), edges + graph.size()
print(nx.__version__, files, nodes, edges)
