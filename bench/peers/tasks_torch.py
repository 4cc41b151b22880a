#!/usr/bin/env python3
"""The peer of `finetune --task ner|squad|squad2|msmarco|custom`, of custom with --choice-columns choices: PyTorch and transformers with the settings of finetune's
defaults: AdamW (no decay on biases and LayerNorm), linear warm-up over a tenth of the steps, clip 1, dropout of the model.
usage: tasks_torch.py TASK MODEL_DIRECTORY TRAIN EVAL OUTPUT SEED EPOCHS THREADS longest|grouped|LENGTH [STEPS [LOSSES]]
A batch is padded to its longest example or to LENGTH. With "grouped" it is cut into eight parts of like lengths, whose
gradients are added, and dropout draws 16 bits an element: the same step in less than half the time, to compare what is
learned, not how fast.
Writes OUTPUT in the form that `evaluate` scores: word, tag, prediction; predictions.json; query, passage, rank; the columns
of predictions.tsv. With STEPS
it stops after so many and writes nothing. With LOSSES that is the whole run, its examples are in the order of the file,
padding is no place for an answer (as in finetune; in transformers it is), and the loss of each step is a line of this file.
With 0 EPOCHS the model is scored as it is. Prints one JSON line: examples per second (median over the steps)."""
import json
import sys
import time

import torch
from torch.nn.functional import cross_entropy
from transformers import (AutoTokenizer, BertForMultipleChoice, BertForQuestionAnswering, BertForSequenceClassification,
                          BertForTokenClassification, get_linear_schedule_with_warmup)

task, directory, train_file, eval_file, output, seed, epochs, threads, padding = sys.argv[1:10]
most_steps = int(sys.argv[10]) if len(sys.argv) > 10 else None
losses_file = open(sys.argv[11], "w") if len(sys.argv) > 11 else None
BATCH = 32
PART = 4
LENGTH = {"ner": 128, "custom": 128, "msmarco": 512}.get(task, 384)
torch.set_num_threads(int(threads))
torch.manual_seed(int(seed))
tokenizer = AutoTokenizer.from_pretrained(directory)


def pad(batch):
    """A list of encodings as tensors, padded to the longest of them or to a fixed length."""
    if isinstance(batch[0]["input_ids"][0], list):  # choices
        flat = pad([{key: one[key][i] for key in one if key != "labels"} for one in batch
                    for i in range(len(one["input_ids"]))])
        tensors = {key: value.view(len(batch), -1, value.shape[1]) for key, value in flat.items()}
        return {**tensors, "labels": torch.tensor([one["labels"] for one in batch])} if "labels" in batch[0] else tensors
    width = int(padding) if padding.isdigit() else max(len(one["input_ids"]) for one in batch)
    filler = {"labels": -100}
    return {key: torch.tensor([one[key] + [filler.get(key, 0)] * (width - len(one[key])) for one in batch])
            if isinstance(batch[0][key], list) else torch.tensor([one[key] for one in batch])
            for key in batch[0] if not key.startswith("_")}


def groups_of(batch):
    """The parts of a batch whose gradients are computed one after another."""
    if padding != "grouped":
        return [batch]
    batch = sorted(batch, key=lambda one: len(one["input_ids"]) if task != "custom" else sum(map(len, one["input_ids"])))
    return [batch[i:i + PART] for i in range(0, len(batch), PART)]


def weight(part):
    """What the mean of the loss is over: labelled words, else examples."""
    return sum(label != -100 for one in part for label in one["labels"]) if task == "ner" else len(part)


def dropout(x, p=0.5, training=True, inplace=False):
    """torch.nn.functional.dropout with p in steps of 2^-16: on one core torch's own takes a seventh of a step."""
    if not training or p == 0:
        return x
    bits = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-2**63, None).view(torch.int16)[:x.numel()]
    return x * ((bits >= round(p * 2**16) - 2**15).view(x.shape) * (1 / (1 - p)))


attention = {}
if padding == "grouped":
    torch.nn.functional.dropout = dropout
    attention["attn_implementation"] = "eager"  # the others draw inside


# ---- word labels: the label of a word belongs to its first piece

def read_words(file):
    sentences, words = [], []
    for line in open(file, encoding="utf-8"):
        columns = line.rstrip("\n").split("\t") if "\t" in line else line.split()
        if line.startswith("# ") and not words:
            continue
        if not columns or not columns[0]:
            if words:
                sentences.append(words)
            words = []
        else:
            words.append((columns[0], columns[-1]))
    return sentences + ([words] if words else [])


def encode_words(sentence, names):
    encoding = tokenizer([word for word, _ in sentence], is_split_into_words=True, truncation=True, max_length=LENGTH)
    owners, labels, before = encoding.word_ids(), [], None
    for owner in owners:
        labels.append(names.index(sentence[owner][1]) if owner is not None and owner != before else -100)
        before = owner
    return {**encoding, "labels": labels, "_owners": owners}


# ---- answers: windows of a context, 128 pieces from one to the next

def read_questions(file):
    return [(p["context"], q) for article in json.load(open(file, encoding="utf-8"))["data"]
            for p in article["paragraphs"] for q in p["qas"]]


def span_of(answer, context, offsets, pieces):
    """The pieces of an answer by Google's rule: all of the words, split at white space, that it touches; or as few of these
    pieces as are those of the answer. None if a piece of it lies outside."""
    first, last = answer["answer_start"], answer["answer_start"] + len(answer["text"])
    while first > 0 and not context[first - 1].isspace():
        first -= 1
    while last < len(context) and not context[last].isspace():
        last += 1
    inside = [t for t, o in enumerate(offsets) if o and first <= o[0] < last]
    if not inside or context[first:offsets[inside[0]][0]].strip() or context[offsets[inside[-1]][1]:last].strip():
        return None
    begin, end, wanted = inside[0], inside[-1], tokenizer.tokenize(answer["text"])
    return next(((s, e) for s in range(begin, end + 1) for e in range(end, s - 1, -1) if pieces[s:e + 1] == wanted),
                (begin, end))


def encode_question(context, question, training):
    room = LENGTH - 3 - len(tokenizer(question["question"], add_special_tokens=False)["input_ids"])
    encoding = tokenizer(question["question"], context, truncation="only_second", max_length=LENGTH,
                         stride=max(0, room - 128), return_overflowing_tokens=True, return_offsets_mapping=True)
    answers = question.get("answers") or []
    windows = []
    for i, ids in enumerate(encoding["input_ids"]):
        offsets, owners = encoding["offset_mapping"][i], encoding.sequence_ids(i)
        window = {"input_ids": ids, "token_type_ids": encoding["token_type_ids"][i],
                  "attention_mask": encoding["attention_mask"][i], "_id": question["id"], "_context": context,
                  "_offsets": [offset if owner == 1 else None for offset, owner in zip(offsets, owners)]}
        if training:
            span = span_of(answers[0], context, window["_offsets"], encoding.tokens(i)) if answers else None
            start, end = span or (0, 0)
            window.update(start_positions=start, end_positions=end)
        windows.append(window)
    return windows


def answers_of(windows, outputs):
    best, nulls = {}, {}
    for window, (starts, ends) in zip(windows, outputs):
        null = starts[0] + ends[0]
        nulls[window["_id"]] = min(null, nulls.get(window["_id"], null))
        offsets = window["_offsets"]
        for s in sorted(range(len(offsets)), key=lambda i: -starts[i])[:20]:
            for e in sorted(range(len(offsets)), key=lambda i: -ends[i])[:20]:
                if offsets[s] and offsets[e] and s <= e < s + 30:
                    score = starts[s] + ends[e]
                    if score > best.get(window["_id"], (-1e9, ""))[0]:
                        best[window["_id"]] = (score, window["_context"][offsets[s][0]:offsets[e][1]])
    empty = (-1e9, "")
    return {i: "" if task == "squad2" and nulls[i] > best.get(i, empty)[0] else best.get(i, empty)[1] for i in nulls}


# ---- passages

def encode_passage(query, passage, label):
    q = tokenizer(query, add_special_tokens=False)["input_ids"][:62]
    p = tokenizer(passage, add_special_tokens=False)["input_ids"][:LENGTH - len(q) - 3]
    ids = [tokenizer.cls_token_id] + q + [tokenizer.sep_token_id] + p + [tokenizer.sep_token_id]
    types = [0] * (len(q) + 2) + [1] * (len(p) + 1)
    return {"input_ids": ids, "token_type_ids": types, "attention_mask": [1] * len(ids), "labels": label}


# ---- choices

def encode_choices(row):
    choices = row["choices"]
    return {**tokenizer([row["text"]] * len(choices), choices, truncation="longest_first", max_length=LENGTH),
            "labels": row["label"]}


def loss_of(tensors):
    if model.config.problem_type == "multi_label_classification":  # a ranker with one output
        tensors = {**tensors, "labels": tensors["labels"].float().unsqueeze(1)}
    outputs = model(**tensors)
    if losses_file is None or task not in ("squad", "squad2"):
        return outputs.loss
    low = (1 - tensors["attention_mask"]) * -1e9
    return (cross_entropy(outputs.start_logits + low, tensors["start_positions"]) +
            cross_entropy(outputs.end_logits + low, tensors["end_positions"])) / 2


if task == "ner":
    train, held_out = read_words(train_file), read_words(eval_file)
    names = sorted({tag for sentence in train for _, tag in sentence})
    examples = [encode_words(sentence, names) for sentence in train]
    model = BertForTokenClassification.from_pretrained(directory, num_labels=len(names), **attention)
elif task in ("squad", "squad2"):
    examples = [w for c, q in read_questions(train_file) for w in encode_question(c, q, True)]
    model = BertForQuestionAnswering.from_pretrained(directory, **attention)
elif task == "custom":
    examples = [encode_choices(json.loads(line)) for line in open(train_file, encoding="utf-8")]
    model = BertForMultipleChoice.from_pretrained(directory, **attention)
else:
    rows = [line.rstrip("\n").split("\t") for line in open(train_file, encoding="utf-8")]
    examples = [encode_passage(r[0], r[1 + i], 1 - i) for r in rows for i in (0, 1)]
    model = BertForSequenceClassification.from_pretrained(directory, **attention)  # two outputs, or as the model says

decayed = [p for n, p in model.named_parameters() if not (n.endswith("bias") or "LayerNorm" in n)]
others = [p for n, p in model.named_parameters() if n.endswith("bias") or "LayerNorm" in n]
optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}],
                              lr=5e-5)
steps = most_steps if losses_file else -(-len(examples) // BATCH) * int(epochs)
schedule = get_linear_schedule_with_warmup(optimizer, round(0.1 * steps), steps)
model.train()
times, step = [], 0
for epoch in range(int(epochs)):
    order = list(range(len(examples))) if losses_file else torch.randperm(len(examples)).tolist()
    for begin in range(0, len(order), BATCH):
        if most_steps is not None and step >= most_steps:
            break
        batch = [examples[i] for i in order[begin:begin + BATCH]]
        parts = [(pad(part), weight(part) / weight(batch)) for part in groups_of(batch)]
        clock = time.perf_counter()
        optimizer.zero_grad()
        loss = 0
        for tensors, share in parts:
            part_loss = loss_of(tensors) * share
            part_loss.backward()
            loss += part_loss.item()
        if losses_file:
            print(loss, file=losses_file)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        times.append(time.perf_counter() - clock)
        step += 1
times = sorted(times[2:])
if times:
    print(json.dumps({"examples_per_second": BATCH / times[len(times) // 2], "steps": step}))
if most_steps is not None:
    sys.exit()

model.eval()


@torch.no_grad()
def outputs_of(encoded):
    padding_of_training = padding
    globals()["padding"] = "longest"
    for begin in range(0, len(encoded), BATCH):
        part = encoded[begin:begin + BATCH]
        batch = pad([{k: v for k, v in one.items() if k in ("input_ids", "token_type_ids", "attention_mask")}
                     for one in part])
        yield from zip(part, zip(*[t.tolist() for t in model(**batch).to_tuple()]))
    globals()["padding"] = padding_of_training


with open(output, "w", encoding="utf-8") as out:
    if task == "ner":
        encoded = [{**encode_words([(w, names[0]) for w, _ in s], names), "_words": s} for s in held_out]
        for one, (logits,) in outputs_of(encoded):
            tags = {}
            for owner, row in zip(one["_owners"], logits):
                if owner is not None and owner not in tags:
                    tags[owner] = names[max(range(len(names)), key=lambda i: row[i])]
            for i, (word, tag) in enumerate(one["_words"]):
                out.write(f"{word}\t{tag}\t{tags.get(i, 'O')}\n")
            out.write("\n")
    elif task in ("squad", "squad2"):
        windows = [w for c, q in read_questions(eval_file) for w in encode_question(c, q, False)]
        json.dump(answers_of(windows, [pair for _, pair in outputs_of(windows)]), out)
    elif task == "custom":
        encoded = [encode_choices(json.loads(line)) for line in open(eval_file, encoding="utf-8")]
        for number, (one, (logits,)) in enumerate(outputs_of(encoded)):
            if number == 0:
                out.write("\t".join(["id", "prediction"] + [f"probability_{i}" for i in range(len(logits))]) + "\ttext\n")
            shares = torch.tensor(logits).softmax(0).tolist()
            out.write("\t".join(map(str, [number, shares.index(max(shares)), *shares])) + "\t-\n")
    else:
        rows = [line.rstrip("\n").split("\t") for line in open(eval_file, encoding="utf-8")]
        encoded = [{**encode_passage(r[2], r[3], 0), "_query": r[0], "_passage": r[1]} for r in rows]
        ranked = {}
        for one, (logits,) in outputs_of(encoded):
            ranked.setdefault(one["_query"], []).append((logits[1] - logits[0], one["_passage"]))
        for query, passages in ranked.items():
            for rank, (_, passage) in enumerate(sorted(passages, key=lambda p: -p[0])):
                out.write(f"{query}\t{passage}\t{rank + 1}\n")
