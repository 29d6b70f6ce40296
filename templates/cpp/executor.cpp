// SPDX-License-Identifier: Apache-2.0
// Runtime acme.executor: executes straight plans by itself, on level (c) of the kit. Each
// instruction is computed by the kernel that the plan chose; put your own code into compute().
// Other plans use level (a).
#include <chrono>
#include <optional>

#include "tenon.hpp"
#include "values.hpp"

TN_PLUGIN_MANIFEST("runtime", "acme.executor", "CPU", "0", "1.0.0", "Acme", "")

namespace {

using tenon::check;
using tenon::owner;

// The runtime's data for a session, and the options that it accepts.
class Session {
 public:
  static tn_status check_options(const tn_session_options *options, tn_error *err)
  {
    return tn_session_options_check_settings(options, nullptr, 0, err);  // it has no settings
  }
  Session(const tn_session_options *, tn_error *) {}
};

// One step of a straight plan.
class Step {
 public:
  Step(const tenon::program &program, tn_step *step, tn_error *err)
      : program_(program), step_(step), err_(err), values_(program, step, err)
  {
  }

  void run()
  {
    try {
      run_segments();
    } catch (const tenon::failure &) {
      values_.explain_memory();
      throw;
    }
  }

 private:
  void run_segments()
  {
    bool last = program_.instructions.empty();
    for (std::size_t number = 0; !last; number++) {
      const tn_layout_segment segment = values_.begin_segment(number);
      for (uint32_t i = segment.begin; i < segment.end; i++) {
        const tn_plan_instruction &in = program_.instructions[i];
        for (uint32_t k = 0; k < in.n_outputs; k++) values_.place(in.outputs[k]);
        record(i, [&] { return compute(i, in); });
        values_.end(in);
      }
      last = segment.is_last;
    }
    values_.give_outputs();
  }

  // Records every instruction for metadata, including one that fails, and one with nothing to
  // compute, which takes no time.
  template <class F>
  void record(uint32_t i, F &&f)
  {
    if (!tn_step_wants_records(step_)) {
      f();
      return;
    }
    const int64_t start = now();
    try {
      const bool computed = f();
      tn_step_record(step_, values_.layout(), i, nullptr, start, computed ? now() : start, TN_OK);
    } catch (const tenon::failure &e) {
      tn_step_record(step_, values_.layout(), i, nullptr, start, now(), e.status());
      throw;
    }
  }

  static int64_t now()
  {
    using namespace std::chrono;
    return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();  // CLOCK_MONOTONIC
  }

  // Returns whether there was something to compute. The op is tn_operation_type(in.op), its inputs
  // are values_.view(in.inputs[k]).
  bool compute(uint32_t i, const tn_plan_instruction &in)
  {
    auto how = tenon::sized<tn_layout_instruction>();
    check(tn_kit_layout_instruction(values_.layout(), i, &how, err_));
    if (!how.computes) return false;  // its outputs are views of its inputs, or follow from shapes
    inputs_.clear();
    outputs_.clear();
    for (uint32_t k = 0; k < in.n_inputs; k++) inputs_.push_back(values_.view(in.inputs[k]));
    for (uint32_t k = 0; k < in.n_outputs; k++) outputs_.push_back(values_.view(in.outputs[k]));
    made_.assign(in.n_outputs, nullptr);
    check(tn_kit_compute(step_, values_.layout(), i, inputs_.data(), outputs_.data(),
                         values_.scratch(how.scratch_bytes), made_.data(), err_));
    for (uint32_t k = 0; k < in.n_outputs; k++)
      if (made_[k] != nullptr) values_.own(in.outputs[k], owner<tn_tensor>(made_[k]));
    return true;
  }

  const tenon::program &program_;
  tn_step *step_;
  tn_error *err_;
  tenon::step_values values_;
  std::vector<tn_view *> inputs_, outputs_;
  std::vector<tn_tensor *> made_;
};

// The executable of a plan.
class Executable {
 public:
  Executable(Session &, const tn_plan *plan, tn_error *err)
  {
    if (tn_plan_check_straight(plan, nullptr) == TN_OK) {
      program_.emplace(plan, err);
    } else {
      tn_executable *kit = nullptr;
      check(tn_kit_prepare(plan, TN_KIT_INLINE, &kit, err));
      kit_.reset(kit);
    }
  }

  void run(tn_step *step, tn_error *err) const
  {
    if (kit_) check(tn_kit_step(kit_.get(), step, err));
    else Step(*program_, step, err).run();
  }

 private:
  std::optional<tenon::program> program_;
  owner<tn_executable> kit_;
};

using Runtime = tenon::runtime<Session, Executable>;
constexpr tn_session_factory factory = Runtime::factory("acme.executor");
constexpr const tn_session_factory *factories[] = {&factory};
constexpr tn_plugin plugin = Runtime::plugin("acme.executor", "1.0.0", "CPU", factories, 1);

}  // namespace

TN_PLUGIN_DEFINE(plugin)
