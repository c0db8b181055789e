# Sets PUNCTUAL_SEED, from which everything is drawn that is drawn, unless it is set: . ci/seed.sh. The seed follows from the
# commit's hash, so that each landing draws anew and the same commit draws the same; ci/search.sh takes it from the clock.
# A failure is repeated by the command that printed the seed, with PUNCTUAL_SEED before it. Sourced, from the root.

if [[ -z "${PUNCTUAL_SEED:-}" ]]; then
  PUNCTUAL_SEED=$((16#$(git rev-parse --short=8 HEAD 2>/dev/null || echo 1)))
fi
# What proptest and the model checker read themselves.
export PUNCTUAL_SEED PROPTEST_RNG_SEED="$PUNCTUAL_SEED" SHUTTLE_RANDOM_SEED="$PUNCTUAL_SEED"
printf 'PUNCTUAL_SEED=%s\n' "$PUNCTUAL_SEED"
