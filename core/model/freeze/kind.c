/* SPDX-License-Identifier: Apache-2.0 */
/* What freezing knows of ops. */
#include <core/model/freeze/freeze.h>

#include <string.h>

static const tn__freeze_op rows[] = {
  { .op = "VarHandleOp", .kind = TN__FREEZE_HANDLE, .becomes = "Const", .output = "output" },
  { .op = "VariableV2", .kind = TN__FREEZE_REFERENCE, .becomes = "Const", .output = "output" },
  { .op = "Variable", .kind = TN__FREEZE_REFERENCE, .becomes = "Const", .output = "output" },
  { .op = "Identity", .kind = TN__FREEZE_PASS },
  { .op = "Enter", .kind = TN__FREEZE_PASS },
  { .op = "Exit", .kind = TN__FREEZE_PASS },
  { .op = "NextIteration", .kind = TN__FREEZE_PASS },
  { .op = "Switch", .kind = TN__FREEZE_PASS, .two = true },
  { .op = "Merge", .kind = TN__FREEZE_MERGE },
  { .op = "RefIdentity", .kind = TN__FREEZE_PASS_REFERENCE, .becomes = "Identity" },
  { .op = "RefEnter", .kind = TN__FREEZE_PASS_REFERENCE, .becomes = "Enter" },
  { .op = "RefExit", .kind = TN__FREEZE_PASS_REFERENCE, .becomes = "Exit" },
  { .op = "RefNextIteration", .kind = TN__FREEZE_PASS_REFERENCE, .becomes = "NextIteration" },
  { .op = "RefSwitch", .kind = TN__FREEZE_PASS_REFERENCE, .becomes = "Switch", .two = true },
  { .op = "RefMerge", .kind = TN__FREEZE_MERGE_REFERENCE, .becomes = "Merge" },
  { .op = "IdentityN", .kind = TN__FREEZE_PASS_EACH },
  { .op = "ReadVariableOp", .kind = TN__FREEZE_READ, .becomes = "Identity", .output = "output" },
  { .op = "ResourceGather", .kind = TN__FREEZE_GATHER, .becomes = "GatherV2" },
  { .op = "ResourceGatherNd", .kind = TN__FREEZE_GATHER_ND, .becomes = "GatherNd" },
  { .op = "VariableShape", .kind = TN__FREEZE_SHAPE, .becomes = "Shape" },
  { .op = "VarIsInitializedOp", .kind = TN__FREEZE_IS_SET, .becomes = "Const", .output = "output" },
  { .op = "IsVariableInitialized", .kind = TN__FREEZE_IS_SET_REFERENCE, .becomes = "Const", .output = "output" },
  { .op = "PartitionedCall", .kind = TN__FREEZE_CALL },
  { .op = "StatefulPartitionedCall", .kind = TN__FREEZE_CALL, .pure = "PartitionedCall" },
  { .op = "If", .kind = TN__FREEZE_BRANCH, .pure = "StatelessIf" },
  { .op = "StatelessIf", .kind = TN__FREEZE_BRANCH },
  { .op = "Case", .kind = TN__FREEZE_BRANCH, .pure = "StatelessCase" },
  { .op = "StatelessCase", .kind = TN__FREEZE_BRANCH },
  { .op = "While", .kind = TN__FREEZE_LOOP, .pure = "StatelessWhile" },
  { .op = "StatelessWhile", .kind = TN__FREEZE_LOOP },
};
static const tn__freeze_op other = { .op = "", .kind = TN__FREEZE_OTHER };

const tn__freeze_op *tn__freeze_op_of(tn__slice op)
{
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (tn__slice_is(op, rows[i].op)) return &rows[i];
  return &other;
}

/* Ops whose names are longer than any registered one are not registered. */
static const tn_op_schema *schema_of(tn__slice op)
{
  char name[256];
  if (op.size >= sizeof name) return NULL;
  memcpy(name, op.data, op.size);
  name[op.size] = 0;
  return tn_op_schema_find(name);
}

static bool is_handle(const tn_op_arg *arg) { return arg->is_ref || arg->dtype == TN_RESOURCE; }

bool tn__freeze_makes_resource(tn__slice op)
{
  static const char *const of_step[] = { "TensorArray", "TensorArrayV2", "TensorArrayV3",
                                         "Stack",       "StackV2",       "TemporaryVariable" };
  const tn_op_schema *schema = schema_of(op);
  if (schema == NULL) return false;
  for (size_t i = 0; i < sizeof of_step / sizeof *of_step; i++)
    if (tn__slice_is(op, of_step[i])) return false;
  tn_op_arg arg = { .struct_size = sizeof arg };
  for (size_t i = 0; tn_op_schema_input(schema, i, &arg, NULL) == TN_OK; i++)
    if (is_handle(&arg)) return false;
  for (size_t i = 0; tn_op_schema_output(schema, i, &arg, NULL) == TN_OK; i++)
    if (is_handle(&arg)) return true;
  return false;
}

bool tn__freeze_has_effect(tn__slice op)
{
  const tn_op_schema *schema = schema_of(op);
  return schema == NULL || (tn_op_schema_traits(schema) & (TN_TRAIT_STATEFUL | TN_TRAIT_RANDOM)) != 0;
}
