// Loss functions. reduction: 0 none, 1 mean, 2 sum.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<
    "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) "
    "-> Tensor">
    nll_loss_nd;
inline constexpr Op<
    "nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> "
    "Tensor">
    nll_loss;
inline constexpr Op<
    "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
    "ignore_index=-100, float label_smoothing=0.) -> Tensor">
    cross_entropy_loss;
inline constexpr Op<"mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor"> mse_loss;
inline constexpr Op<"l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor"> l1_loss;
inline constexpr Op<"smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor">
    smooth_l1_loss;
inline constexpr Op<"huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor">
    huber_loss;
inline constexpr Op<
    "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor">
    binary_cross_entropy;
inline constexpr Op<
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? "
    "pos_weight=None, int reduction=1) -> Tensor">
    binary_cross_entropy_with_logits;
inline constexpr Op<"kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor">
    kl_div;
inline constexpr Op<
    "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> "
    "Tensor">
    poisson_nll_loss;
inline constexpr Op<"soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor">
    soft_margin_loss;
inline constexpr Op<
    "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> "
    "Tensor">
    margin_ranking_loss;
inline constexpr Op<
    "hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor">
    hinge_embedding_loss;
inline constexpr Op<
    "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> "
    "Tensor">
    cosine_embedding_loss;
inline constexpr Op<
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float p=2., float "
    "eps=1e-06, bool swap=False, int reduction=1) -> Tensor">
    triplet_margin_loss;
inline constexpr Op<"cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor">
    cosine_similarity;
inline constexpr Op<
    "pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=1e-06, bool keepdim=False) -> Tensor">
    pairwise_distance;

}  // namespace fl
