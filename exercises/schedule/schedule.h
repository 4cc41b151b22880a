#pragma once

/// The learning rate of step number `step`, counted from 0.
double learning_rate(int step, int warmup, int total, double peak);
