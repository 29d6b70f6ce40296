// SPDX-License-Identifier: Apache-2.0
// The values of one step of a straight plan in host memory: what a runtime on level (c) needs besides its computing.
// The layout says where each value goes; here it gets its memory there, and outputs get to the program.
#ifndef VALUES_HPP
#define VALUES_HPP

#include <vector>

#include "tenon.hpp"

namespace tenon {

// What is known of a plan before its steps.
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
  std::vector<uint32_t> readers;  // by value: how often instructions and outputs of the step read it
};

class step_values {
 public:
  step_values(const program &of, tn_step *step, tn_error *err)
      : program_(of), step_(step), err_(err), values_(of.values.size()), views_(of.values.size()),
        readers_(of.readers), outputs_(tn_plan_n_outputs(of.plan))
  {
    std::vector<tn_tensor *> inputs(tn_step_n_inputs(step));
    for (std::size_t i = 0; i < inputs.size(); i++) inputs[i] = tn_step_input(step, i);
    tn_plan_layout *layout = nullptr;
    check(tn_kit_layout(of.plan, inputs.data(), inputs.size(), &layout, err));
    layout_.reset(layout);
    for (uint32_t i = 0; i < values_.size(); i++) {
      const tn_plan_value &v = of.values[i];
      if (v.kind == TN_VALUE_FEED) set(i, inputs[v.index]);
      if (v.kind == TN_VALUE_CONSTANT) set(i, const_cast<tn_tensor *>(v.constant));
    }
  }

  const tn_plan_layout *layout() const noexcept { return layout_.get(); }
  tn_view *view(uint32_t i) const { return views_[i]; }  // NULL until the value is placed

  // Begins segment `number`; those before it were run. What they had in the arena is gone.
  tn_layout_segment begin_segment(std::size_t number)
  {
    auto segment = sized<tn_layout_segment>();
    if (number > 0) check(tn_kit_layout_next(layout_.get(), views_.data(), views_.size(), err_));
    check(tn_kit_layout_segment(layout_.get(), number, &segment, err_));
    arena_ = allocate(segment.arena_bytes);
    return segment;
  }

  // Gives value i its memory, before it is computed; one that its kernel makes (TN_PLACE_GIVEN) has none yet.
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
      to.view.data = static_cast<char *>(arena_.get()) + v.offset;
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

  // Value i is this tensor, which its kernel made.
  void own(uint32_t i, owner<tn_tensor> tensor)
  {
    set(i, tensor.get());
    values_[i].owned = std::move(tensor);
  }

  // An instruction was run: a tensor that nobody reads any more goes. One that a variable gave may then be written in
  // place.
  void end(const tn_plan_instruction &in)
  {
    for (uint32_t k = 0; k < in.n_inputs; k++)
      if (--readers_[in.inputs[k]] == 0) let_go(in.inputs[k]);
    for (uint32_t k = 0; k < in.n_outputs; k++)
      if (readers_[in.outputs[k]] == 0) let_go(in.outputs[k]);
  }

  // Hands the outputs out: each is what was made for it or, since it has to be the program's alone, a copy.
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
    tn_tensor *tensor = nullptr;  // whose memory it is, when it is a tensor's
    owner<tn_tensor> owned;
    uint32_t source = none;  // the value whose memory it shares
  };
  static constexpr uint32_t none = UINT32_MAX;

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

  // The tensor that output o becomes: the caller's, or a new one.
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
  owner<tn_plan_layout> layout_;
  owner<void> arena_;
  std::vector<value> values_;
  std::vector<tn_view *> views_;
  std::vector<uint32_t> readers_;  // that are still to come
  std::vector<owner<tn_tensor>> outputs_;
};

}  // namespace tenon

#endif
