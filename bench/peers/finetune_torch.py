#!/usr/bin/env python3
"""The peer of `finetune --task mrpc`: PyTorch and transformers over the same rows, batches of 32; bf16 is autocast.
usage: finetune_torch.py MODEL_DIRECTORY MRPC_TRAIN_TSV THREADS longest|128 [STEPS [f32|bf16]]
Tokenisation is left out of the times. Prints one JSON line: rows per second (median over the steps)."""
import csv
import json
import sys
import time

import torch
from transformers import AutoTokenizer, BertForSequenceClassification

directory, tsv, threads, padding = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
steps = int(sys.argv[5]) if len(sys.argv) > 5 else 12
half = sys.argv[6:] == ["bf16"]
torch.set_num_threads(threads)
torch.manual_seed(1)
with open(tsv, encoding="utf-8") as file:
    rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1 : 1 + 32 * steps]
tokenizer = AutoTokenizer.from_pretrained(directory)
model = BertForSequenceClassification.from_pretrained(directory, num_labels=2).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, weight_decay=0.01)
batches = []
for begin in range(0, len(rows), 32):
    part = rows[begin : begin + 32]
    pad = {"padding": "max_length", "max_length": 128} if padding == "128" else {"padding": True, "max_length": 128}
    batch = tokenizer([r[3] for r in part], [r[4] for r in part], truncation=True, return_tensors="pt", **pad)
    batch["labels"] = torch.tensor([int(r[0]) for r in part])
    batches.append(batch)
times = []
for batch in batches:
    begin = time.perf_counter()
    optimizer.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        loss = model(**batch).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    times.append(time.perf_counter() - begin)
times = sorted(times[2:])
print(json.dumps({"rows_per_second": 32 / times[len(times) // 2], "steps": len(times)}))
