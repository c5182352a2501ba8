# SPDX-License-Identifier: Apache-2.0
"""The structs and constants of conv_fft.h (ABI 1), in its order."""
from ctypes import (POINTER, CFUNCTYPE, Structure, c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint,
                    c_uint64, c_void_p)

ABI = 1
MAX_RANK = 3
MAX_STAGES = 12

DEVICE_AUTO, DEVICE_CPU = -1, -2
# The lists of the header, in its order; test_library.py compares them.
ITEM_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8}
DTYPES = {name: number for number, name in enumerate(ITEM_BYTES)}
DTYPE_NAMES = tuple(DTYPES)
DTYPE_SAME = -1
MATHS = {"default": 0, "fp32": 1, "tf32": 2, "half": 3, "fp64": 4}
PADDINGS = {"zeros": 0, "circular": 1, "reflect": 2, "replicate": 3}
LAYOUTS = {"first": 0, "last": 1}
TUNINGS = {"cached": 0, "off": 1, "measure": 2, "exhaustive": 3}
FORWARD, BACKWARD_DATA, BACKWARD_WEIGHTS, BACKWARD, ALL_PASSES = 1, 2, 4, 6, 7
PASSES = {"forward": FORWARD, "backward_data": BACKWARD_DATA, "backward_weights": BACKWARD_WEIGHTS,
          "backward": BACKWARD, "all": ALL_PASSES}
ACCUMULATE_GX, ACCUMULATE_GW, ACCUMULATE_GBIAS = 1, 2, 4
POLICIES = {"fastest": 0, "newest": 1, "mine": 2, "theirs": 3}

Axes = c_int64 * MAX_RANK
Strides = c_int64 * (2 + MAX_RANK)


class ContextOptions(Structure):
    _fields_ = [("device", c_int), ("threads", c_int), ("log_level", c_int), ("cache_directory", c_char_p),
                ("struct_bytes", c_int64), ("reserved", c_int64 * 3)]


class Problem(Structure):
    _fields_ = [("rank", c_int), ("batch", c_int64), ("in_channels", c_int64), ("out_channels", c_int64),
                ("groups", c_int64), ("input", Axes), ("kernel", Axes), ("stride", Axes), ("dilation", Axes),
                ("pad_before", Axes), ("pad_after", Axes), ("padding", c_int), ("tensor_layout", c_int),
                ("weight_layout", c_int), ("dtype", c_int), ("weight_grad_dtype", c_int), ("math", c_int),
                ("x_stride", Strides), ("y_stride", Strides), ("w_stride", Strides), ("fp32_weights", c_int64),
                ("reserved", c_int64 * 3)]


class PlanOptions(Structure):
    _fields_ = [("passes", c_int), ("tuning", c_int), ("workspace_limit", c_uint64), ("keep", c_int),
                ("tune_milliseconds", c_int64), ("tune_again", c_int), ("trusted", c_int), ("strategy", c_char_p * 3),
                ("own_kernels", c_int64), ("any_alignment", c_int64),
                ("cancel", c_void_p), ("reserved", c_int64 * 1)]


class Stage(Structure):
    _fields_ = [("name", c_char * 24), ("bytes", c_double), ("operations", c_double), ("predicted_ms", c_double),
                ("measured_ms", c_double)]


class Description(Structure):
    _fields_ = [("strategy", c_char * 256), ("basis", Axes), ("tiles", Axes), ("shares_gy", c_int),
                ("workspace_bytes", c_uint64), ("predicted_ms", c_double), ("measured_ms", c_double),
                ("stage_count", c_int), ("stages", Stage * MAX_STAGES)]


class TuneRecord(Structure):
    _fields_ = [("problem", c_char_p), ("strategy", c_char_p), ("pass_", c_int), ("ms", c_double),
                ("predicted_ms", c_double), ("direct_ms", c_double), ("workspace_bytes", c_uint64),
                ("workspace_class", c_uint64), ("keep", c_int), ("candidates", c_int64), ("tuning", c_int),
                ("model_ms", c_double), ("fastest_ms", c_double), ("processors", c_double)]


class TuneStatistics(Structure):
    _fields_ = [("records", c_int64), ("hits", c_int64), ("misses", c_int64), ("unusable", c_int64),
                ("corrupt", c_int64)]


class TuneCandidate(Structure):
    _fields_ = [("pass_", c_int), ("strategy", c_char_p), ("predicted_ms", c_double), ("measured_ms", c_double),
                ("workspace_bytes", c_uint64), ("verdict", c_char_p)]


TuneVisit = CFUNCTYPE(c_int, POINTER(TuneRecord), c_void_p)
CandidateVisit = CFUNCTYPE(c_int, POINTER(TuneCandidate), c_void_p)
TuneProgress = CFUNCTYPE(c_int, c_int64, c_int64, c_void_p)

# Every function that returns a status: its parameters. Handles and memory are plain addresses.
P = c_void_p
CALLS = {
    "conv_fft_context_options_init": [P],
    "conv_fft_context_create": [P, P],
    "conv_fft_devices_report": [c_char_p, c_size_t, P],
    "conv_fft_problem_init": [P, c_int],
    "conv_fft_problem_output": [P, P],
    "conv_fft_problem_parse": [c_char_p, P, c_char_p, c_size_t],
    "conv_fft_problem_format": [P, c_char_p, c_size_t],
    "conv_fft_plan_options_init": [P],
    "conv_fft_plan_create": [P, P, P, P],
    "conv_fft_plan_workspace": [P, c_int, P],
    "conv_fft_plan_describe": [P, c_int, P],
    "conv_fft_profile": [P, c_int, c_int, P],
    "conv_fft_forward": [P, P, P, P, P, P, c_size_t, P],
    "conv_fft_backward": [P, P, P, P, P, P, P, c_uint, P, c_size_t, P],
    "conv_fft_tune_load": [P, c_char_p],
    "conv_fft_tune_save": [P, c_char_p],
    "conv_fft_tune_merge": [P, c_char_p, c_int],
    "conv_fft_tune_export": [P, c_char_p, P, c_int64],
    "conv_fft_tune_foreach": [P, TuneVisit, P],
    "conv_fft_tune_stats": [P, P],
    "conv_fft_cache_report": [c_char_p, c_char_p, c_size_t, P, P],
    "conv_fft_cache_repair": [P, P],
    "conv_fft_cache_clear": [c_char_p, P],
    "conv_fft_tune_candidates": [P, P, P, CandidateVisit, P],
    "conv_fft_tune_problems": [P, P, c_int64, P, TuneProgress, P],
}
# The others: result, parameters.
OTHERS = {
    "conv_fft_status_string": (c_char_p, [c_int]),
    "conv_fft_last_error": (c_char_p, []),
    "conv_fft_version": (c_int, []),
    "conv_fft_version_string": (c_char_p, []),
    "conv_fft_version_abi": (c_int, []),
    "conv_fft_context_destroy": (None, [P]),
    "conv_fft_context_device": (c_int, [P]),
    "conv_fft_context_description": (c_char_p, [P]),
    "conv_fft_plan_destroy": (None, [P]),
}
