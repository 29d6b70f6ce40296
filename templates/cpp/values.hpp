// SPDX-License-Identifier: Apache-2.0
// The values of one step of a straight plan in host memory: what a level (c) runtime needs besides
// its computation. The layout says where each value is stored; this class allocates the memory and
// returns the outputs to the program. Layouts and memory are kept with the plan for the next step,
// so that a step with known shapes allocates no memory from the library.
#ifndef VALUES_HPP
#define VALUES_HPP

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "tenon.hpp"

namespace tenon {

// Layouts and memory that steps of a plan leave for later steps. Used by several threads at once.
class leftovers {
 public:
  using layout = std::shared_ptr<tn_plan_layout>;
  struct block {
    owner<void> memory;
    std::size_t bytes = 0;
  };

  // Returns the layout for these inputs. It is kept and shared if it depends on shapes alone and
  // has one segment.
  layout find(const tn_plan *plan, const std::vector<tn_tensor *> &inputs, tn_error *err)
  {
    const std::vector<int64_t> key = shapes_of(inputs);
    std::lock_guard<std::mutex> lock(mutex_);
    const auto same = [&](const auto &known) { return known.first == key; };
    const auto at = std::find_if(layouts_.begin(), layouts_.end(), same);
    if (at != layouts_.end()) {
      std::rotate(layouts_.begin(), at, at + 1);  // most recently used first
      return layouts_.front().second;
    }
    tn_plan_layout *made = nullptr;
    check(tn_kit_layout(plan, inputs.data(), inputs.size(), &made, err));
    layout owned(made, deleter());
    if (!is_for_all_steps(plan)) return owned;
    if (layouts_.size() == most_layouts) layouts_.pop_back();
    layouts_.insert(layouts_.begin(), {key, owned});
    return owned;
  }

  // Takes a block of at least `bytes` bytes; give() returns it.
  block take(std::size_t bytes)
  {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const auto fits = [&](const block &b) { return b.bytes >= bytes; };
      const auto at = std::find_if(blocks_.begin(), blocks_.end(), fits);
      if (at != blocks_.end()) {
        block found = std::move(*at);
        blocks_.erase(at);
        return found;
      }
    }
    return block{allocate(bytes), bytes};
  }
  void give(block &&b)
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (b.memory && blocks_.size() < most_blocks) blocks_.push_back(std::move(b));
  }

 private:
  static constexpr std::size_t most_layouts = 16, most_blocks = 16;

  static std::vector<int64_t> shapes_of(const std::vector<tn_tensor *> &inputs)
  {
    std::vector<int64_t> key;
    for (const tn_tensor *t : inputs) {
      key.push_back(tn_tensor_rank(t));
      key.insert(key.end(), tn_tensor_dims(t), tn_tensor_dims(t) + tn_tensor_rank(t));
    }
    return key;
  }
  static bool is_for_all_steps(const tn_plan *plan)
  {
    if (tn_plan_n_segments(plan) > 1) return false;
    for (std::size_t i = 0; i < tn_plan_n_values(plan); i++)
      if (tn_plan_value_gives_shapes(plan, i)) return false;
    return true;
  }

  std::mutex mutex_;
  std::vector<std::pair<std::vector<int64_t>, layout>> layouts_;
  std::vector<block> blocks_;
};

// Properties of a plan that are known before its steps.
struct program {
  program(const tn_plan *p, tn_error *err)
      : plan(p), instructions(tn_plan_n_instructions(p), sized<tn_plan_instruction>()),
        values(tn_plan_n_values(p), sized<tn_plan_value>()), readers(tn_plan_n_values(p))
  {
    for (std::size_t i = 0; i < instructions.size(); i++) check(tn_plan_get_instruction(p, i, &instructions[i], err));
    for (std::size_t i = 0; i < values.size(); i++) check(tn_plan_get_value(p, i, &values[i], err));
    for (const auto &in : instructions)
      for (uint32_t k = 0; k < in.n_inputs; k++) readers[in.inputs[k]]++;
    for (std::size_t o = 0; o < tn_plan_n_outputs(p); o++) readers[tn_plan_output(p, o)]++;
  }

  const tn_plan *plan;
  std::vector<tn_plan_instruction> instructions;
  std::vector<tn_plan_value> values;
  std::vector<uint32_t> readers;  // by value: number of reads by instructions and outputs of the step
  mutable leftovers kept;
};

class step_values {
 public:
  step_values(const program &of, tn_step *step, tn_error *err)
      : program_(of), step_(step), err_(err), values_(of.values.size()), views_(of.values.size()),
        readers_(of.readers), outputs_(tn_plan_n_outputs(of.plan))
  {
    std::vector<tn_tensor *> inputs(tn_step_n_inputs(step));
    for (std::size_t i = 0; i < inputs.size(); i++) inputs[i] = tn_step_input(step, i);
    layout_ = of.kept.find(of.plan, inputs, err);
    for (uint32_t i = 0; i < values_.size(); i++) {
      const tn_plan_value &v = of.values[i];
      if (v.kind == TN_VALUE_FEED) set(i, inputs[v.index]);
      if (v.kind == TN_VALUE_CONSTANT) set(i, const_cast<tn_tensor *>(v.constant));
    }
  }

  ~step_values()
  {
    program_.kept.give(std::move(arena_));
    program_.kept.give(std::move(scratch_));
  }
  step_values(const step_values &) = delete;
  step_values &operator=(const step_values &) = delete;

  const tn_plan_layout *layout() const noexcept { return layout_.get(); }
  tn_view *view(uint32_t i) const { return views_[i]; }  // NULL until the value is placed

  // Begins segment `number`, after those before it were run. Their arena contents are overwritten.
  tn_layout_segment begin_segment(std::size_t number)
  {
    auto segment = sized<tn_layout_segment>();
    if (number > 0) check(tn_kit_layout_next(layout_.get(), views_.data(), views_.size(), err_));
    check(tn_kit_layout_segment(layout_.get(), number, &segment, err_));
    grow(arena_, segment.arena_bytes);
    return segment;
  }

  // Scratch memory for the next kernel; NULL for 0 bytes.
  void *scratch(std::size_t bytes)
  {
    if (bytes > 0) grow(scratch_, bytes);
    return bytes > 0 ? scratch_.memory.get() : nullptr;
  }

  // After a step ran out of memory: adds to the error which values hold memory.
  void explain_memory() const
  {
    std::vector<tn_tensor *> tensors(values_.size());
    for (std::size_t i = 0; i < values_.size(); i++) tensors[i] = values_[i].owned ? values_[i].owned.get() : nullptr;
    for (std::size_t o = 0; o < outputs_.size(); o++)
      if (outputs_[o]) tensors[tn_plan_output(program_.plan, o)] = outputs_[o].get();
    tn_step_explain_memory(step_, program_.plan, tensors.data(), tensors.size(), arena_.bytes + scratch_.bytes, err_);
  }

  // Allocates the memory of value i before it is computed. A value that its kernel makes
  // (TN_PLACE_GIVEN) has none yet.
  void place(uint32_t i)
  {
    const tn_layout_value v = where(i);
    value &to = values_[i];
    if (v.source != i) {
      to.tensor = values_[v.source].tensor;
      to.view = values_[v.source].view;
      readers_[v.source]++;
      to.source = v.source;
    } else if (v.place == TN_PLACE_ARENA) {
      to.view.data = static_cast<char *>(arena_.memory.get()) + v.offset;
    } else if (v.place == TN_PLACE_KNOWN) {
      to.view.data = const_cast<void *>(v.data);
    } else if (v.place == TN_PLACE_OUTPUT) {
      set(i, output(v.index));
    } else if (v.place == TN_PLACE_OWN) {
      own(i, make_tensor(v.dtype, v.dims, v.rank, err_));
    }
    to.view.dims = v.dims;
    to.view.rank = v.rank;
    to.view.count = v.count;
    to.view.dtype = v.dtype;
    views_[i] = &to.view;
  }

  // Sets value i to a tensor that its kernel made.
  void own(uint32_t i, owner<tn_tensor> tensor)
  {
    set(i, tensor.get());
    values_[i].owned = std::move(tensor);
  }

  // Call after an instruction was run: releases tensors that have no readers left. If a variable
  // supplied the tensor, later instructions may then write it in place.
  void end(const tn_plan_instruction &in)
  {
    for (uint32_t k = 0; k < in.n_inputs; k++)
      if (--readers_[in.inputs[k]] == 0) let_go(in.inputs[k]);
    for (uint32_t k = 0; k < in.n_outputs; k++)
      if (readers_[in.outputs[k]] == 0) let_go(in.outputs[k]);
  }

  // Returns the outputs to the program: the tensor made for the output or, since it must belong to
  // the program alone, a copy.
  void give_outputs()
  {
    for (std::size_t o = 0; o < outputs_.size(); o++) {
      const value &v = values_[tn_plan_output(program_.plan, o)];
      if (tn_tensor *given = tn_step_output(step_, o)) {
        if (given != v.tensor) copy_into(given, v.view, err_);
      } else {
        owner<tn_tensor> out = outputs_[o] ? std::move(outputs_[o]) : copy_of(v.view, v.tensor, err_);
        tn_step_set_output(step_, o, out.release());
      }
    }
  }

 private:
  struct value {
    tn_view view{};
    tn_tensor *tensor = nullptr;  // the tensor whose memory it is, if any
    owner<tn_tensor> owned;
    uint32_t source = none;  // the value whose memory it shares
  };
  static constexpr uint32_t none = UINT32_MAX;

  // Grows a block; its content is lost.
  void grow(leftovers::block &b, std::size_t bytes)
  {
    if (b.bytes >= bytes) return;
    program_.kept.give(std::exchange(b, leftovers::block()));
    b = program_.kept.take(bytes);
  }

  void let_go(uint32_t i)
  {
    if (values_[i].owned) views_[i] = nullptr;
    values_[i].owned.reset();
    const uint32_t source = std::exchange(values_[i].source, none);
    if (source != none && --readers_[source] == 0) let_go(source);
  }

  void set(uint32_t i, tn_tensor *tensor)
  {
    values_[i].view = view_of(tensor);
    values_[i].tensor = tensor;
    views_[i] = &values_[i].view;
  }

  tn_layout_value where(uint32_t i) const
  {
    auto v = sized<tn_layout_value>();
    check(tn_kit_layout_value(layout_.get(), i, &v, err_));
    return v;
  }

  // The tensor of output o: the caller's, or a new one.
  tn_tensor *output(uint32_t o)
  {
    const tn_layout_value v = where(tn_plan_output(program_.plan, o));
    if (tn_tensor *given = tn_step_output(step_, o)) {
      require_shape(given, v.dtype, v.dims, v.rank);
      return given;
    }
    outputs_[o] = make_tensor(v.dtype, v.dims, v.rank, err_);
    return outputs_[o].get();
  }

  const program &program_;
  tn_step *step_;
  tn_error *err_;
  leftovers::layout layout_;
  leftovers::block arena_, scratch_;
  std::vector<value> values_;
  std::vector<tn_view *> views_;
  std::vector<uint32_t> readers_;  // remaining reads, by value
  std::vector<owner<tn_tensor>> outputs_;
};

}  // namespace tenon

#endif
