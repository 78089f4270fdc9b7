"""What a network does to each packet, from a seed: the same for everybody who is measured on it."""
import random

FIRST = 100  # packets: a call begins on a good network, since its beginning is a row of its own


def fates(network, count, seed):
    """Milliseconds of delay for each packet, None for a lost one. `network`: {"loss": per cent, "jitter": ms, "delay": ms}."""
    chance = random.Random(f"{seed} {sorted(network.items())}")
    loss, jitter, delay = network.get("loss", 0) / 100, network.get("jitter", 0), network.get("delay", 0)
    fates = []
    for number in range(count):
        lost = chance.random() < loss
        # Most packets wait little, some wait long: an exponential delay, bounded.
        more = min(chance.expovariate(1 / jitter), 4 * jitter) if jitter else 0
        fates.append(None if lost and number >= FIRST else delay + (more if number >= FIRST else 0))
    return fates
