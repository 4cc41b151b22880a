"""A classifier behind LitServe and ONNX Runtime, which batches across requests. A peer of bench/serve.sh.

usage: serve_litserve.py MODEL_DIRECTORY MODEL.onnx PORT     needs litserve onnxruntime tokenizers numpy
"""
import sys

import litserve
from onnx_classifier import Classifier


class Api(litserve.LitAPI):
    def setup(self, device):
        self.classifier = Classifier(sys.argv[1], sys.argv[2])

    def decode_request(self, request):
        return request["inputs"]

    def predict(self, x):
        return self.classifier(x)

    def encode_response(self, output):
        return output


if __name__ == "__main__":
    server = litserve.LitServer(Api(max_batch_size=32, batch_timeout=0.002, api_path="/predict"), accelerator="cpu")
    server.run(host="127.0.0.1", port=int(sys.argv[3]), log_level="warning", generate_client_file=False)
