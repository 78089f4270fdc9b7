// What a program of the suite does to the surface's unit. Nothing of Apple's.
#pragma once
#include <stdint.h>

/// The call so many from now fails: setting a property, initializing or starting.
void surface_unit_refuse(int calls);
int surface_unit_made(void);
int surface_unit_disposed(void);
int surface_unit_running(void);
/// 8,192 samples each: what is captured next, and what was played last.
int16_t *_Nonnull surface_unit_microphone(void);
int16_t *_Nonnull surface_unit_loudspeaker(void);
/// One slice, as the unit's thread does it; the callbacks' status, −1 without a unit that runs.
int surface_unit_tick(uint32_t frames);
/// Of this thread, since it began.
long surface_mallocs(void);
