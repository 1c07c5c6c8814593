#include "refusal.h"
