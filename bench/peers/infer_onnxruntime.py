#!/usr/bin/env python3
"""The peer of `bench_step base THREADS infer`: ONNX Runtime over a BERT base of random weights, one row of 128 tokens or LENGTH.
usage: infer_onnxruntime.py THREADS MODEL.onnx [SECONDS [LENGTH]]
MODEL.onnx is exported by PyTorch where it does not exist, for 128 tokens. Other lengths need one of `export`. Prints one JSON line."""
import json
import os
import sys
import time

import numpy as np

threads, path = int(sys.argv[1]), sys.argv[2]
seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 5
length = int(sys.argv[4]) if len(sys.argv) > 4 else 128
if not os.path.exists(path):
    import torch
    from transformers import BertConfig, BertModel

    class Bert(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = BertModel(BertConfig(attn_implementation="eager", use_cache=False))

        def forward(self, ids, mask, types):
            output = self.bert(input_ids=ids, attention_mask=mask, token_type_ids=types)
            return output.last_hidden_state, output.pooler_output

    ids = torch.randint(0, 30522, (1, 128))
    torch.onnx.export(Bert().eval(), (ids, torch.ones_like(ids), torch.zeros_like(ids)), path, dynamo=False, opset_version=17,
                      input_names=["input_ids", "attention_mask", "token_type_ids"],
                      output_names=["last_hidden_state", "pooler_output"])

import onnxruntime

options = onnxruntime.SessionOptions()
options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
ids = np.random.default_rng(1).integers(0, 30522, (1, length))
feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
for _ in range(3):
    session.run(None, feed)
times, start = [], time.perf_counter()
while len(times) < 4 or time.perf_counter() - start < seconds:
    begin = time.perf_counter()
    session.run(None, feed)
    times.append(time.perf_counter() - begin)
times.sort()
print(json.dumps({"n": len(times), "median_s": times[len(times) // 2], "min_s": times[0]}))
