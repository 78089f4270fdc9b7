import Bytes

/// The named limits of this module; every bound on a queue, table or message stands here.
enum Limits {
  /// Streams at a time; one more is refused.
  static let streams = 500
  /// From the name of the peer to `start`.
  static let opening: Duration = .seconds(4)
  /// How often rings are read and filled while there is a stream: what a frame waits at most beyond its tick.
  static let interval: Duration = .milliseconds(5)
  /// A message of the peer: a second of audio in Base64 is 21 KB.
  static let messageBytes = 1 << 20
  /// The answer to the opening handshake.
  static let handshakeBytes = 16_384
  static let readBytes = 65_536
  static let readsPerStep = 4
  /// Octets that wait for a peer that does not read: about 2 s; then frames are dropped and counted.
  static let unsentBytes = 96_000
  /// The same with all that is not audio (answers to pings, marks): with more the connection is closed.
  static let surelyUnreadBytes = 1 << 20
  /// A peer that reads nothing for so long, with something for it, has gone.
  static let unread: Duration = .seconds(15)
  /// What of the peer's audio waits to be played, in samples at its rate: 120 s. What is beyond is dropped and counted.
  static let queuedSeconds = 120
  /// Marks that wait for the audio before them.
  static let marks = 1_000
  static let markBytes = 256
  /// Frames that wait in the ring toward the media thread: what `clear` cannot take back.
  static let framesAhead = 2
  /// Frames that are gathered before a talkspurt is played: at first, and as it may grow when audio comes late.
  static let heldFrames = 1...5
  /// Who goes on so soon after running dry was late; after so long without, one frame less is held.
  static let lateWithin: Duration = .milliseconds(500)
  static let calm: Duration = .seconds(10)
  /// What a peer that talks in real time may be behind: with more it talks faster. Of its silence one frame in so many is left out.
  static let liveFrames = 25
  static let cutEvery = 5
  /// What still waited whenever one of so many pieces came is waited for in vain: half a second of 20 ms each.
  static let sparePieces = 25
  /// Pieces that the audio which waits came in.
  static let queuedPieces = 20_000
  /// Questions and answers between the threads.
  static let commands = 4_096
}
