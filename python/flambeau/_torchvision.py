"""torchvision's own operators, which its wheel has as a compiled extension for PyTorch:
torch.ops.torchvision.nms, ...
"""
from . import _C, _ops

_SCHEMAS = {
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align": "(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, "
                 "int sampling_ratio, bool aligned) -> Tensor",
    "roi_pool": "(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width) -> "
                "(Tensor, Tensor)",
    "ps_roi_align": "(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, "
                    "int sampling_ratio) -> (Tensor, Tensor)",
    "ps_roi_pool": "(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width) -> "
                   "(Tensor, Tensor)",
    "deform_conv2d": "(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, int stride_h, "
                     "int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w, int groups, "
                     "int offset_groups, bool use_mask) -> Tensor",
    "_cuda_version": "() -> int", "qnms": "(...) -> Tensor", "qroi_align": "(...) -> Tensor",
    "box_iou_rotated": "(Tensor boxes1, Tensor boxes2) -> Tensor",
    **{f"_{name}_backward": "(...) -> Tensor" for name in (
        "roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d")},
}


def nms(dets, scores, iou_threshold):
    """Indices of the boxes (x1, y1, x2, y2) that stay, by falling score: a box goes if it overlaps one that
    stays by more than iou_threshold."""
    if dets.dim() != 2 or dets.shape[1] != 4:
        raise RuntimeError(f"boxes should be a 2d tensor with 4 columns, got {tuple(dets.shape)}")
    if tuple(scores.shape) != (dets.shape[0],):
        raise RuntimeError(f"boxes and scores should have same number of elements in dimension 0, got "
                           f"{dets.shape[0]} and {tuple(scores.shape)}")
    order = scores.detach().argsort(stable=True, descending=True)
    count = len(order)
    if count == 0:
        return order
    boxes = dets.detach()[order].float() if dets.dtype is _C.float16 else dets.detach()[order]
    low = _C.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = _C.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    common = (high - low).clamp(min=0).prod(-1)
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    overlaps = common / (area[:, None] + area - common) > iou_threshold
    # A row as one long integer, a byte for each box.
    rows = memoryview(overlaps.cpu().contiguous().untyped_storage())
    gone, stays = 0, []
    for i in range(count):
        if not gone >> (8 * i) & 1:
            stays.append(i)
            gone |= int.from_bytes(rows[i * count:(i + 1) * count], "little")
    return order[_C.tensor(stays, dtype=_C.int64).to(order.device)]


def _bilinear(images, y, x):
    """images (C, H, W) at positions y, x of any one shape: (C, *shape). Beyond one pixel outside: 0."""
    channels, height, width = images.shape
    inside = (y >= -1) & (y <= height) & (x >= -1) & (x <= width)
    y, x = y.clamp(0, height - 1), x.clamp(0, width - 1)
    top, left = y.floor(), x.floor()
    dy, dx = y - top, x - left
    top, left = top.long(), left.long()
    bottom, right = (top + 1).clamp(max=height - 1), (left + 1).clamp(max=width - 1)
    flat = images.reshape(channels, -1)

    def at(row, column):
        return flat[:, (row * width + column).reshape(-1)].reshape(channels, *row.shape)

    upper = at(top, left) * (1 - dx) + at(top, right) * dx
    lower = at(bottom, left) * (1 - dx) + at(bottom, right) * dx
    return (upper * (1 - dy) + lower * dy) * inside


def roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned):
    """Means of bilinear samples in a grid of bins over each box (image, x1, y1, x2, y2) (He et al., 2017)."""
    if rois.dim() != 2 or rois.shape[1] != 5:
        raise RuntimeError(f"rois must have shape as Tensor[K, 5], got {tuple(rois.shape)}")
    out, offset = [], 0.5 if aligned else 0.0
    for image, *corners in rois.detach().tolist():
        x1, y1, x2, y2 = (c * spatial_scale - offset for c in corners)
        width, height = (x2 - x1, y2 - y1) if aligned else (max(x2 - x1, 1.0), max(y2 - y1, 1.0))
        y = _positions(y1, height, pooled_height, sampling_ratio, input)
        x = _positions(x1, width, pooled_width, sampling_ratio, input)
        rows, columns = y.numel(), x.numel()
        values = _bilinear(input[int(image)], y.reshape(-1, 1).expand(rows, columns),
                           x.reshape(1, -1).expand(rows, columns))
        values = values.reshape(-1, pooled_height, y.shape[1], pooled_width, x.shape[1])
        out.append(values.mean((2, 4)))
    if not out:
        return input.new_zeros((0, input.shape[1], pooled_height, pooled_width))
    return _C.stack(out)


def _positions(start, length, bins, ratio, like):
    """(bins, samples) positions along one side of a box."""
    samples = ratio if ratio > 0 else max(1, -int(-length // bins))
    size = length / bins
    at = [[start + size * (b + (s + 0.5) / samples) for s in range(samples)] for b in range(bins)]
    return _C.tensor(at, dtype=like.dtype).to(like.device)


def roi_pool(input, rois, spatial_scale, pooled_height, pooled_width):
    """The largest element of each bin of each box, and where it is in its channel (-1 for an empty bin)."""
    channels, height, width = input.shape[1:]
    outputs, places = [], []
    for image, *corners in rois.detach().tolist():
        x1, y1, x2, y2 = (int(_round(c * spatial_scale)) for c in corners)
        rows = _edges(y1, max(y2 - y1 + 1, 1), pooled_height, height)
        columns = _edges(x1, max(x2 - x1 + 1, 1), pooled_width, width)
        for top, bottom in rows:
            for left, right in columns:
                part = input[int(image), :, top:bottom, left:right]
                if part.numel() == 0:
                    outputs.append(input.new_zeros((channels,)))
                    places.append(input.new_full((channels,), -1, dtype=_C.int64))
                    continue
                value, at = part.reshape(channels, -1).max(1)
                outputs.append(value)
                n = right - left
                places.append((top + at.div(n, rounding_mode="floor")) * width + left + at % n)
    shape = (rois.shape[0], pooled_height, pooled_width, channels)
    if not outputs:
        empty = input.new_zeros((0, channels, pooled_height, pooled_width))
        return empty, empty.long()
    return tuple(_C.stack(x).reshape(shape).permute(0, 3, 1, 2).contiguous() for x in (outputs, places))


def ps_roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio):
    """As roi_align; each bin reads channels of its own. Also returns which channel each element is from."""
    aligned = roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, True)
    return _own_channels(aligned, pooled_height, pooled_width)


def _own_channels(pooled, height, width):
    """Of (boxes, channels height width, height, width): channel (c, i, j) at bin (i, j)."""
    count, channels = pooled.shape[0], pooled.shape[1] // (height * width)
    if channels * height * width != pooled.shape[1]:
        raise RuntimeError("input channels must be a multiple of pooling height * pooling width, got "
                           f"{pooled.shape[1]} for {height} * {width}")
    grid = pooled.reshape(count, channels, height, width, height, width)
    own = grid.diagonal(0, 2, 4).diagonal(0, 2, 3)
    mapping = _C.arange(pooled.shape[1], dtype=_C.int32, device=pooled.device)
    mapping = mapping.reshape(1, channels, height, width)
    return own.contiguous(), mapping.expand(count, -1, -1, -1).contiguous()


def ps_roi_pool(input, rois, spatial_scale, pooled_height, pooled_width):
    """The mean of each bin of each box over channels of its own; also which channel each element is from."""
    height, width = input.shape[2:]
    outputs = []
    for image, *corners in rois.detach().tolist():
        x1, y1, x2, y2 = (int(_round(c * spatial_scale)) for c in corners)
        rows = _edges(y1, max(y2 - y1, 1), pooled_height, height - 1)
        columns = _edges(x1, max(x2 - x1, 1), pooled_width, width - 1)
        parts = [input[int(image), :, top:bottom, left:right] for top, bottom in rows for left,
                 right in columns]
        means = [p.mean((1, 2)) if p.numel() else input.new_zeros(p.shape[0]) for p in parts]
        outputs.append(_C.stack(means, -1).reshape(-1, pooled_height, pooled_width))
    if not outputs:
        return _own_channels(input.new_zeros((0, input.shape[1], pooled_height, pooled_width)),
                             pooled_height, pooled_width)
    return _own_channels(_C.stack(outputs), pooled_height, pooled_width)


def deform_conv2d(input, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w,
                  groups, offset_groups, use_mask):
    """A convolution whose kernel's elements are moved by offsets, and weighted by a mask (Zhu et al., 2018).
    """
    batch, channels, height, width = input.shape
    out_channels, _, kernel_h, kernel_w = weight.shape
    kernel, (out_h, out_w) = kernel_h * kernel_w, offset.shape[-2:]
    if offset.shape[1] != 2 * offset_groups * kernel:
        raise RuntimeError(f"offset.shape[1] is not valid: got {offset.shape[1]}, expected "
                           f"{2 * offset_groups * kernel}")

    def grid(count, out, stride, pad, dilation):
        """Where a kernel's elements lie for each output, without offsets: (kernel, out)."""
        along = _C.arange(out, dtype=input.dtype, device=input.device) * stride - pad
        return _C.arange(count, dtype=input.dtype, device=input.device)[:, None] * dilation + along

    offset = offset.reshape(batch * offset_groups, kernel_h, kernel_w, 2, out_h, out_w)
    y = offset[:, :, :, 0] + grid(kernel_h, out_h, stride_h, pad_h, dilation_h)[:, None, :, None]
    x = offset[:, :, :, 1] + grid(kernel_w, out_w, stride_w, pad_w, dilation_w)[None, :, None, :]
    images = input.reshape(batch * offset_groups, channels // offset_groups, height, width)
    values = _bilinear_or_zero(images, y.reshape(y.shape[0], -1), x.reshape(x.shape[0], -1))
    if use_mask:
        values = values * mask.reshape(batch * offset_groups, 1, -1)
    columns = values.reshape(batch, groups, channels // groups * kernel, out_h * out_w)
    out = weight.reshape(groups, out_channels // groups, -1) @ columns
    return out.reshape(batch, out_channels, out_h, out_w) + bias[:, None, None]


def _bilinear_or_zero(images, y, x):
    """images (N, C, H, W) at positions y, x (N, P): (N, C, P). Pixels outside are 0."""
    count, channels, height, width = images.shape
    y, x = y.clamp(-1, height) + 1, x.clamp(-1, width) + 1
    flat = _C.constant_pad_nd(images, [1, 1, 1, 1]).reshape(count, channels, -1)
    top, left = (v.detach().floor().clamp(max=n) for v, n in ((y, height), (x, width)))
    dy, dx = (y - top).unsqueeze(1), (x - left).unsqueeze(1)
    first = (top * (width + 2) + left).long().unsqueeze(1).expand(-1, channels, -1)

    def at(step):
        return flat.gather(2, first + step)

    upper = at(0) * (1 - dx) + at(1) * dx
    lower = at(width + 2) * (1 - dx) + at(width + 3) * dx
    return upper * (1 - dy) + lower * dy


def _round(x):
    """Halves away from zero, as C rounds."""
    return int(abs(x) + 0.5) * (1 if x >= 0 else -1)


def _edges(start, length, bins, limit):
    """Begin and end of each bin."""
    size = length / bins
    clip = lambda v: min(max(v + start, 0), limit)  # noqa: E731
    return [(clip(int(b * size // 1)), clip(-int(-(b + 1) * size // 1))) for b in range(bins)]


def register():
    """Makes the operators, once torchvision asks for its extension."""
    for name, schema in _SCHEMAS.items():
        _ops.define(f"torchvision::{name}", schema)
    _ops.find("torchvision::_cuda_version").function = lambda: -1
    for function in (nms, roi_align, roi_pool, ps_roi_align, ps_roi_pool, deform_conv2d):
        operator = _ops.find(f"torchvision::{function.__name__}")
        operator.function, operator.composite = function, True
