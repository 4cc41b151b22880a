"""A classifier behind FastAPI and ONNX Runtime, a request at a time: what people write. A peer of bench/serve.sh.

usage: serve_fastapi.py MODEL_DIRECTORY MODEL.onnx PORT     needs fastapi uvicorn uvloop httptools onnxruntime tokenizers numpy
"""
import sys

import fastapi
import uvicorn
from onnx_classifier import Classifier

classifier = Classifier(sys.argv[1], sys.argv[2])
app = fastapi.FastAPI()


@app.post("/predict")
def predict(request: dict):
    return classifier([request["inputs"]])[0]


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[3]), log_level="warning", loop="uvloop", http="httptools")
