"""What the golden files are about: specs, attacks, events, commands and links, as a user writes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SPECS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "fedavg": {
        "method": {"name": "fedavg", "weighting": "size"}, "dataset": "mnist", "model": "lenet5",
        "partition": {"name": "shards", "per-client": 3}, "momentum": 0.9, "weight-decay": 0.0001, "seed": 7,
    },
    "fedsgd": {
        "method": {"name": "fedsgd", "batches": "one", "server-step": 2.0}, "rounds": 5, "batch": 1,
        "dataset": {"name": "cifar10", "normalise": False}, "model": {"name": "lenet-sigmoid", "init": "uniform"},
    },
    "udp-fedavg": {"method": "udp-fedavg"},
    "udp-fedavg, every option": {
        "method": {"name": "udp-fedavg", "noise": 0.25, "clip": 0.5, "server-step": 1.0, "noise-split": "full-local"},
        "dataset": {"name": "fashion-mnist", "full": True}, "partition": {"name": "dirichlet", "alpha": 0.3},
        "rounds": 12, "clients": 200, "sampled": 20, "sampling": "fixed", "epochs": 3, "batch": 16, "lr": 0.05,
        "honest-share": 0.8, "delta": 1e-6, "seed": 9007199254740992,
    },
    "target": {
        "method": {"name": "udp-fedavg", "noise": 3.0}, "target-epsilon": 8.0, "view": "outsider",
    },
    "budget": {"method": {"name": "udp-fedavg"}, "budget": 4.0, "view": "server", "delta": 1e-5},
    "view without a number": {"method": "udp-fedavg", "view": "aggregate"},
    "dp-fedavg": {
        "method": {"name": "dp-fedavg", "noise": 0.5, "clip": 2.0}, "sampling": "all", "clients": 10,
        "model": {"name": "mlp", "hidden": 32, "bias": True, "dropout": 0.5},
    },
    "fedceo": {
        "method": {
            "name": "fedceo", "smoothing": 2.0, "growth": 1.05, "every": 3, "layers": 1, "unsampled-clients": "mean",
            "client-order": "averaged",
        },
        "model": {"name": "convnet", "width": 16},
    },
    "fedceo-released": {
        "method": "fedceo-released", "dataset": {"name": "emnist", "split": "balanced"},
        "partition": {"name": "classes-per-client", "classes": 3},
    },
    "ppsgd": {
        "method": {"name": "ppsgd", "head-epochs": 2, "head-lr": 0.05}, "dataset": {"name": "cifar10", "full": True},
        "model": {"name": "alexnet", "width": 16, "hidden": 64, "dropout": 0.1},
    },
    "centaur": {"method": {"name": "centaur", "noise-split": "paper"}, "delta": 1e-4, "partition": {"name": "iid"}},
    "movie reviews": {
        "dataset": {"name": "movie-reviews", "length": 20}, "model": {"name": "lstm", "words": 500, "width": 16},
    },
    "sentiment140": {
        "dataset": {"name": "sentiment140", "one-in": 100}, "model": {"name": "lstm", "hidden": 16},
        "sampling": "poisson", "partition": "shards",
    },
    "underscores": {
        "method": {"name": "udp_fedavg", "server_step": 0.3}, "weight_decay": 0.001, "honest_share": 0.5,
        "target_epsilon": 2, "view": "client",
    },
    "format": {"format": 1, "rounds": 0, "lr": 1, "sampling": "fixed"},
}  # fmt: skip

ATTACKS: dict[str, dict[str, Any]] = {
    "defaults": {"run": {}},
    "analytic": {"run": SPECS["dp-fedavg"], "attack": "analytic", "pictures": ["test-3"], "restarts": 5},
    "dlg": {
        "run": SPECS["fedsgd"], "attack": {"name": "dlg", "iterations": 20, "search": False}, "restarts": 4, "seed": 9,
        "pictures": ["train-7"],
    },
    "idlg": {"run": SPECS["fedsgd"], "attack": "idlg", "round": 3, "client": 5},
    "inverting-gradients": {
        "run": SPECS["udp-fedavg"], "attack": {"name": "inverting-gradients", "iterations": 100}, "round": "last",
        "view": "aggregate", "pictures": ["test-1", "test-2"],
    },
    "gradinversion": {
        "run": {"method": "fedavg", "model": "lenet5"}, "attack": {"name": "gradinversion", "candidates": 3},
        "restarts": 2, "round": "first", "pictures": ["test-0"],
    },
    "gias": {
        "run": SPECS["fedavg"], "attack": {"name": "gias", "bends": 10, "epochs": 2}, "view": "client",
        "pictures": ["own-0123456789abcdef-2"],
    },
    "imprint": {"run": {"rounds": 3}, "attack": {"name": "imprint", "bins": 64}, "pictures": ["train-0", "train-1"]},
    "map": {
        "run": SPECS["target"], "attack": {"name": "map", "smoothness": 5.0, "lr": 0.1}, "view": "outsider",
        "pictures": ["test-4"],
    },
    "format": {"format": 1, "run": {"format": 1, "method": "fedceo"}, "attack": {"name": "map"}},
}  # fmt: skip

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
EVENTS: dict[str, dict[str, Any]] = {
    "started": {
        "run": "0123456789ab", "spec": {"format": 1, "method": {"name": "fedavg"}},
        "facts": {"parameters": 6352, "sizes": [12, 12], "sampling": "fixed", "delta": 1e-5, "noise": None},
    },
    "round": {"round": 2, "of": 30, "cohort": 10, "fraction": 0.5, "numbers": {"loss": 1.25}},
    "measured": {"round": 2, "name": "accuracy", "value": None, "who": "class 3"},
    "spent": {
        "round": 2, "view": "outsider", "epsilon": 1.25, "unit": "user", "adjacency": "zero-out", "delta": 1e-5,
        "accountant": "prv", "sampling": "poisson", "bound": "upper bound", "reason": "", "worst": 7,
        "quantiles": [0.0, 0.5, 1.0, 1.125, 1.25],
    },
    "smoothed": {
        "round": 10, "threshold": 0.5, "clients": [3, 7], "spectra": {"head.weight": [[4.0, 0.25], [1.0, 0.125]]},
        "ranks": {"head.weight": [1, 9]}, "rough": [[[0.5, 0.25]], [[0.125, 0.0625]]],
        "accuracy": [[[1.0, None]], [[0.5, None]]],
    },
    "step": {"what": "playing the rounds before", "fraction": 0.5},
    "seen": {
        "view": "server", "round": 1, "client": 3, "facts": {"steps": 1, "labels": [3], "noise-to-signal": 0.5},
        "originals": [PIXEL], "trivial": {"psnr": [14.75]},
    },
    "pictured": {
        "attack": "map", "iteration": 10, "of": 1500, "restart": 0, "loss": 0.5, "pictures": [PIXEL], "places": [0],
        "psnr": [21.5],
    },
    "judged": {
        "attack": "map", "state": "converged", "reason": "", "restart": 0, "places": [0], "labels": [3],
        "numbers": {"psnr": [31.5]}, "trivial": {"psnr": [14.75]}, "curves": {"psnr": [14.75, 31.5]},
        "restarts": [{"loss": 0.125, "left": 0.0, "state": "converged", "psnr": 31.5}], "floor": 0.25,
    },
    "scored": {
        "attack": "loss-threshold", "view": "server", "unit": "record", "round": 3, "client": 7, "members": 60,
        "others": 60, "auc": 0.75,
        "interval": [0.6875, 0.8125], "tpr": {"0.01": 0.125}, "roc": [[0.5, 0.75], [1.0, 1.0]],
        "numbers": {"auc": 0.75},
    },
    "warned": {"reason": "ε is large", "remedy": "More noise helps", "round": 3},
    "kept": {"kind": "exposure", "name": "exposure-1-0-server", "round": 1, "facts": {"client": 0}},
    "finished": {"rounds": 30, "seconds": 1.5},
    "failed": {"reason": "round 1: broken", "remedy": "Change the learning rate", "trace": "Traceback"},
    "cancelled": {"round": 3},
}  # fmt: skip


@dataclass(frozen=True)
class CommandLine:
    """One command, the home it is given, and whether it takes long; {fedavg} stands for the id of that run."""

    words: str
    filled: bool = False  # on the home of version 0.4.0, else on an empty one
    slow: bool = False


TINY = "--rounds 1 --clients 4 --sampled 2 --epochs 1 --batch 100 --set model.hidden=8"
LINES: dict[str, CommandLine] = {
    **{f"list {shelf}": CommandLine(f"list {shelf} --json") for shelf in ("attacks", "metrics", "datasets", "models")},
    **{f"list {shelf}": CommandLine(f"list {shelf} --json") for shelf in ("methods", "partitions", "tables")},
    "run --dry-run": CommandLine(f"run --method udp-fedavg {TINY} --dry-run --json"),
    "run --dry-run refused": CommandLine("run --dataset cifar10 --clients 4000 --dry-run --json"),
    "run": CommandLine(f"run --method udp-fedavg {TINY} --json", slow=True),
    "run failed": CommandLine(f"run {TINY} --lr 100 --seed 1 --rounds 9 --json", slow=True),
    "attack analytic": CommandLine(
        "attack {fedavg} --attack analytic --picture 4 --round first --json", filled=True, slow=True
    ),
    "attack map": CommandLine(
        "attack {fedavg} --attack map --set iterations=20 --picture 4 --json", filled=True, slow=True
    ),
    "sweep --dry-run": CommandLine(f"sweep --methods udp-fedavg,ppsgd --noises 1 --seeds 2 {TINY} --dry-run --json"),
    "sweep": CommandLine(f"sweep --methods udp-fedavg,fedavg --noises 1,2 --seeds 1 {TINY} --json", slow=True),
    "table 1 --dry-run": CommandLine("table 1 --rows emnist --seeds 1 --dry-run --json", slow=True),
    "epsilon": CommandLine("epsilon --noise 1 --rate 0.1 --steps 30 --delta 1e-5 --json"),
    "epsilon --target-epsilon": CommandLine("epsilon --target-epsilon 2 --rate 0.1 --steps 30 --delta 1e-5 --json"),
    "runs": CommandLine("runs --json", filled=True),
    "cancel": CommandLine("cancel {fedavg} --json", filled=True),
    "delete": CommandLine("delete {fedavg} --json", filled=True),
    "export": CommandLine("export {fedavg} --out {home}/page.html --json", filled=True),
    "doctor": CommandLine("doctor --json", filled=True, slow=True),
}
REFUSED: dict[str, CommandLine] = {
    "a number out of range": CommandLine("run --rounds -1 --json"),
    "an unknown method": CommandLine("run --method nonsense --json"),
    "an unknown parameter": CommandLine("run --set colour=1 --json"),
    "an unknown option": CommandLine("run --colour 1 --json"),
    "an unknown preset": CommandLine("run --preset nonsense --json"),
    "an unknown shelf": CommandLine("list nonsense --json"),
    "an unknown table": CommandLine("table 99 --json"),
    "no seeds": CommandLine("sweep --seeds 0 --json"),
    "a missing number": CommandLine("epsilon --noise 1 --json"),
    "an unknown run": CommandLine("delete 0123456789ab --json"),
    "an attack on an attack": CommandLine("attack {analytic} --json", filled=True),
    "a page of another type": CommandLine("export {fedavg} --out {home}/page.txt --json", filled=True),
}

MLP = (
    "dataset.full=false&dataset.normalise=true&model=mlp&model.hidden=32&model.bias=true&model.dropout=0.0&"
    "partition=iid&rounds=7&clients=20&sampled=5&epochs=1&batch=16&lr=0.1&momentum=0.0&weight-decay=0.0&seed=3&"
    "honest-share=1.0"
)
LINKS: dict[str, str] = {
    "leak": "/",
    "leak, every setting": "/?whose=test-3&many=2&eyes=client&when=last&against=none,dp-fedavg:1,udp-fedavg:0.01&"
    "attacks=map&restarts=3&iterations=40&chance=7&method=fedavg&method.server-step=1.0&method.weighting=uniform&"
    f"sampling=fixed&dataset=mnist&{MLP}",
    "leak, a picture of one's own": "/?whose=own-0123456789abcdef-2&against=none,run&when=3&attacks=analytic,map&"
    "method=udp-fedavg&method.noise=0.1&dataset=fashion-mnist&rounds=5",
    "leak, what it does not know": "/?whose=cat.png&many=9&against=none,magic:1,udp-fedavg:0.10&colour=1",
    "lab at the first page": "/?method=udp-fedavg&method.noise=0.5&rounds=7&clients=40&dataset=mnist",
    "lab at the first page, a run": "/?run=0123456789ab&twin=ba9876543210&seeds=3&method=fedavg",
    "lab, every setting": "/lab?method=udp-fedavg&method.server-step=0.3&method.noise=1.0&method.clip=0.5&"
    f"method.noise-split=full-local&sampling=poisson&dataset=fashion-mnist&{MLP}&delta=1e-06&target-epsilon=8.0&"
    "view=outsider&seeds=2&run=0123456789ab,0123456789ac&twin=ba9876543210&pins=aaaaaaaaaaaa,bbbbbbbbbbbb",
    "lab, text": "/lab?dataset=movie-reviews&dataset.length=20&model=lstm&model.words=500&method=fedavg&sampling=fixed",
    "lab, what it does not know": "/lab?rounds=abc&method=nonsense&colour=1&format=99",
    "trade-off, every setting": "/tradeoff?methods=fedceo,ppsgd&noises=0.5, 2&steps=0.1, 1&seeds=2&plain=false&"
    "eyes=server&whose=personal&of=fedceo.every=5;ppsgd.head-epochs=2&method=udp-fedavg&method.server-step=0.1&"
    f"method.noise=1.0&method.clip=1.0&method.noise-split=paper&sampling=poisson&dataset=fashion-mnist&{MLP}",
    "trade-off, a table": "/tradeoff?table=1/emnist/quick/written&seeds=1",
    "trade-off of a run": "/tradeoff?method=dp-fedavg&method.noise=2.0&rounds=5&clients=20&sampled=20&sampling=all",
    "runs": "/runs",
    "machine": "/machine",
}

# --- the home of version 0.4.0 -----------------------------------------------------------------------------

SMALL = "--rounds 3 --epochs 1 --batch 20"
HOME_RUNS: dict[str, str] = {
    "fedavg": f"run --method fedavg {SMALL} --clients 40 --sampled 3 --set model.hidden=8 --set model.bias=true --json",
    "udp-fedavg": f"run --method udp-fedavg {SMALL} --clients 100 --sampled 10 --partition dirichlet "
    "--set partition.alpha=5 --set noise=0.5 --set server-step=1 --set model.hidden=4 --json",
    "dp-fedavg": f"run --method dp-fedavg {SMALL} --clients 100 --sampled 5 --set noise=0.8 --set model.hidden=4 "
    "--set model.dropout=0.2 --json",
    "fedceo": f"run --method fedceo {SMALL} --clients 600 --sampled 3 --set every=2 --set noise=0.1 "
    "--set model.hidden=4 --json",
}
HOME_ATTACKS: dict[str, str] = {
    "analytic": "attack {fedavg} --attack analytic --picture 3 --round first --json",
    "map": "attack {fedavg} --attack map --set iterations=6 --restarts 2 --picture {picture} --label 3 --round 2 "
    "--json",
}
HOME_OTHERS: dict[str, dict[str, Any]] = {"cancelled": {"rounds": 9, "seed": 1}, "queued": {"rounds": 9, "seed": 2}}
HOME_PAYLOADS: dict[str, tuple[str, ...]] = {  # that stay: all of them would take too much space
    "fedavg": ("partition", "state-0", "state-3"),
    "udp-fedavg": ("state-3",),
    "dp-fedavg": ("state-3",),
    "fedceo": ("state-2", "exposure-1-", "truth-1-"),
}
