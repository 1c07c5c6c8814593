// lang.h - collects the script language.
#pragma once
#include <hidet/lang/arith.h>
#include <hidet/lang/hopper.h>
#include <hidet/lang/loops.h>
#include <hidet/lang/memory.h>
#include <hidet/lang/primitives.h>
#include <hidet/lang/script_module.h>
#include <hidet/lang/statements.h>
#include <hidet/lang/types.h>
#include <hidet/lang/warp.h>
