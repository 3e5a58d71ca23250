"""Writes what pycocotools, scikit-learn and jiwer give for drawn examples, as a reference of the metrics:

  python3 -m pip install pycocotools==2.0.10 scikit-learn==1.7.2 jiwer==4.0.0
  python3 tests/models/reference.py > runtime/engine/modelbench/testdata/reference.json
"""

import contextlib
import importlib.metadata
import json
import random
import sys

import jiwer
import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from sklearn.metrics import accuracy_score, f1_score
from sklearn.metrics.pairwise import cosine_similarity

rng = random.Random(11)


def boxes(images, classes):
    """Objects and what a detector may find of them: moved, of another class, twice, or from nothing."""
    out = []
    for _ in range(images):
        objects, found = [], []
        for _ in range(rng.randint(0, 6)):
            left, top = rng.uniform(0, 500), rng.uniform(0, 500)
            objects.append([rng.randrange(classes), left, top, left + rng.uniform(10, 140), top + rng.uniform(10, 140)])
        for o in objects + [rng.choice(objects) for _ in range(2) if objects]:
            if rng.random() < 0.2:
                continue
            c = o[0] if rng.random() < 0.85 else rng.randrange(classes)
            found.append([c] + [v + rng.gauss(0, rng.choice([1, 4, 12])) for v in o[1:]])
        for _ in range(rng.randint(0, 4)):
            left, top = rng.uniform(0, 500), rng.uniform(0, 500)
            found.append([rng.randrange(classes), left, top, left + rng.uniform(10, 140), top + rng.uniform(10, 140)])
        found = [f for f in found if f[3] > f[1] + 1 and f[4] > f[2] + 1]
        out.append([[[round(v, 3) for v in o] for o in objects], [[round(v, 3) for v in f] for f in found]])
    scores = rng.sample(range(50, 1000), sum(len(f) for _, f in out))
    for _, f in out:
        for box in f:
            box.insert(1, scores.pop() / 1000)
    return out


def coco(images):
    annotations, results = [], []
    for i, (objects, found) in enumerate(images, 1):
        for c, l, t, r, b in objects:
            annotations.append({"id": len(annotations) + 1, "image_id": i, "category_id": c + 1, "bbox": [l, t, r - l, b - t], "area": (r - l) * (b - t), "iscrowd": 0})
        for c, s, l, t, r, b in found:
            results.append({"image_id": i, "category_id": c + 1, "bbox": [l, t, r - l, b - t], "score": s})
    with contextlib.redirect_stdout(sys.stderr):
        truth = COCO()
        truth.dataset = {"info": {}, "images": [{"id": i + 1} for i in range(len(images))], "annotations": annotations, "categories": [{"id": c} for c in range(1, 10)]}
        truth.createIndex()
        e = COCOeval(truth, truth.loadRes(results), "bbox")
        e.evaluate()
        e.accumulate()
        e.summarize()
    return float(e.stats[0])


out = {"by": {name: importlib.metadata.version(name) for name in ("pycocotools", "scikit-learn", "jiwer")}, "map": [], "f1": [], "top-1": [], "cer": [], "cosine": []}
for images, classes in [(1, 1), (8, 2), (40, 4), (12, 7)]:
    drawn = boxes(images, classes)
    out["map"].append({"images": [{"objects": o, "found": f} for o, f in drawn], "want": coco(drawn)})
for n, width in [(30, 1), (50, 6)]:
    truth = [[int(rng.random() < 0.4) for _ in range(width)] for _ in range(n)]
    scores = [[round(min(1, max(0, 0.3 + 0.4 * t + rng.gauss(0, 0.25))), 3) for t in row] for row in truth]
    out["f1"].append({"labels": truth, "scores": scores, "want": float(f1_score(np.array(truth), (np.array(scores) > 0.5).astype(int), average="micro" if width > 1 else "binary"))})
labels = [rng.randrange(5) for _ in range(60)]
scores = [[round(rng.random() + (0.7 if c == l else 0), 3) for c in range(5)] for l in labels]
out["top-1"].append({"labels": [[l] for l in labels], "scores": scores, "want": float(accuracy_score(labels, np.array(scores).argmax(1)))})
letters = "abcdefghij "
for n in (1, 25):
    texts = ["".join(rng.choice(letters[:10]) for _ in range(rng.randint(1, 30))) for _ in range(n)]
    read = ["".join(c for c in t for c in rng.choice([c] * 9 + ["", rng.choice(letters[:10]), c + rng.choice(letters[:10])])) for t in texts]
    out["cer"].append({"texts": texts, "read": read, "want": float(jiwer.cer(texts, read))})
a = np.round(np.random.default_rng(1).normal(size=(20, 32)), 4)
b = np.round(a + np.random.default_rng(2).normal(size=a.shape) * 0.5, 4)
out["cosine"].append({"labels": None, "scores": a.tolist(), "others": b.tolist(), "want": float(np.mean([cosine_similarity(x[None], y[None])[0, 0] for x, y in zip(a, b)]))})
json.dump(out, sys.stdout, separators=(",", ":"))
print()
