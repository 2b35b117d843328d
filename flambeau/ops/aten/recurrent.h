// Recurrent networks: whole ones as PyTorch calls them, their cells, and one layer and one step of each kind.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

// --- networks: layers, directions, dropout between layers ---
inline constexpr Op<
    "lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, "
    "bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)">
    lstm;
inline constexpr Op<
    "lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int "
    "num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)">
    lstm_packed;
inline constexpr Op<
    "gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, "
    "bool "
    "train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)">
    gru;
inline constexpr Op<
    "gru.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, "
    "float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)">
    gru_packed;
inline constexpr Op<
    "rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float "
    "dropout, "
    "bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)">
    rnn_tanh;
inline constexpr Op<
    "rnn_tanh.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int "
    "num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)">
    rnn_tanh_packed;
inline constexpr Op<
    "rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float "
    "dropout, "
    "bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)">
    rnn_relu;
inline constexpr Op<
    "rnn_relu.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int "
    "num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)">
    rnn_relu_packed;

// --- cells: one step with its matrix products ---
inline constexpr Op<
    "lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> "
    "(Tensor, Tensor)">
    lstm_cell;
inline constexpr Op<
    "gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> "
    "Tensor">
    gru_cell;
inline constexpr Op<
    "rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) "
    "-> Tensor">
    rnn_tanh_cell;
inline constexpr Op<
    "rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) "
    "-> Tensor">
    rnn_relu_cell;

// --- one direction of one layer, all steps; `gates` and `x` are the products of the inputs of all steps.
// Rows are packed: batch_sizes[t] of step t one after the other, the longest sequences first, so that those
// of a step are the first rows of the state ---
inline constexpr Op<
    "_lstm_layer(Tensor x, Tensor hx, Tensor cx, Tensor w_hh, Tensor? w_hr, SymInt[] batch_sizes, bool "
    "reverse) -> (Tensor output, Tensor hy, Tensor cy, Tensor gates, Tensor cells)">
    _lstm_layer;
inline constexpr Op<
    "_gru_layer(Tensor x, Tensor hx, Tensor w_hh, Tensor? b_hh, SymInt[] batch_sizes, bool reverse) -> "
    "(Tensor output, Tensor hy, Tensor gates)">
    _gru_layer;
inline constexpr Op<
    "_rnn_layer(Tensor x, Tensor hx, Tensor w_hh, SymInt[] batch_sizes, bool reverse, bool relu) -> (Tensor "
    "output, Tensor hy)">
    _rnn_layer;

// --- what a step does to elements, and its gradient ---
inline constexpr Op<"_lstm_step(Tensor gates, Tensor cx) -> (Tensor hy, Tensor cy)"> _lstm_step;
inline constexpr Op<
    "_lstm_step_backward(Tensor gates, Tensor cx, Tensor grad_hy, Tensor grad_cy) -> (Tensor grad_gates, "
    "Tensor grad_cx)">
    _lstm_step_backward;
inline constexpr Op<"_gru_step(Tensor x, Tensor gates, Tensor hx) -> Tensor"> _gru_step;
inline constexpr Op<
    "_gru_step_backward(Tensor x, Tensor gates, Tensor hx, Tensor grad) -> (Tensor grad_x, Tensor "
    "grad_gates, Tensor grad_hx)">
    _gru_step_backward;

}  // namespace fl
