"""The model of both peers: texts to labels with probabilities, by ONNX Runtime on all cores that it may use."""
import json
import os
import pathlib

import numpy
import onnxruntime
import tokenizers


class Classifier:
    def __init__(self, directory, onnx):
        directory = pathlib.Path(directory)
        config = json.loads((directory / "config.json").read_text())
        self.labels = [config.get("id2label", {}).get(str(i), f"LABEL_{i}") for i in range(len(config.get("id2label", "01")))]
        self.tokenizer = tokenizers.BertWordPieceTokenizer(str(directory / "vocab.txt"))
        self.tokenizer.enable_truncation(config["max_position_embeddings"])
        self.tokenizer.enable_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = len(os.sched_getaffinity(0))
        self.session = onnxruntime.InferenceSession(str(onnx), options, providers=["CPUExecutionProvider"])
        self.names = {each.name: each.type for each in self.session.get_inputs()}

    def __call__(self, texts):
        encoded = self.tokenizer.encode_batch(texts)
        given = {
            "input_ids": [e.ids for e in encoded],
            "attention_mask": [e.attention_mask for e in encoded],
            "token_type_ids": [e.type_ids for e in encoded],
        }
        types = {"tensor(int64)": numpy.int64, "tensor(int32)": numpy.int32}
        feed = {name: numpy.array(given[name], types[self.names[name]]) for name in self.names}
        logits = self.session.run(None, feed)[0]
        shares = numpy.exp(logits - logits.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        return [[{"label": l, "score": float(p)} for l, p in zip(self.labels, row)] for row in shares]
