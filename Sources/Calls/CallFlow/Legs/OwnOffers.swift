import TrunklineSDP

/// Our offers in a leg's dialog: which direction the open one has, and whether it states another address of ours.
///
/// | state | input | → | returns |
/// |---|---|---|---|
/// | any | `move` | an offer with the address is requested | true if none was |
/// | any | `send` | open; it states the address if that was requested | – |
/// | open | `answered` | none open; the peer uses our address | the direction |
/// | open | `refused` | none open; the peer still uses the old address if the offer stated the new one | – |
/// | none open | `answered`, `refused` | same | nil |
struct OwnOffers {
  private var direction: MediaDirection?
  private var isMoveRequested = false
  private var statesMove = false
  /// The status by which the peer refused our new address: its RTP may still go to the old one.
  private(set) var moveRefusal: Int?

  mutating func move() -> Bool {
    defer { isMoveRequested = true }
    return !isMoveRequested
  }

  mutating func send(_ direction: MediaDirection) {
    self.direction = direction
    statesMove = isMoveRequested
    isMoveRequested = false
  }

  mutating func answered() -> MediaDirection? {
    defer { (direction, statesMove, moveRefusal) = (nil, false, nil) }
    return direction
  }

  mutating func refused(_ code: Int) {
    if statesMove { moveRefusal = code }
    direction = nil
    statesMove = false
  }
}
