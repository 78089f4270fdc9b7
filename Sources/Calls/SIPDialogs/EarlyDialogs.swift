/// The dialogs that provisional responses to our INVITE have made (RFC 3261 §12.1.2), one for each To tag.
///
/// | input | known tag | new tag | `Limits.forks` tags |
/// |---|---|---|---|
/// | `open` | the dialog stays | a dialog | refused |
/// | `acknowledge` RSeq | true if it is one more than the last, or the first (RFC 3262 §4) | false | – |
/// | `received` CSeq | false if it is not above the last (RFC 3261 §12.2.2) | true, and not remembered | – |
/// | `nextRequest` | its dialog, with the next CSeq | nil | – |
/// | `removeAll`: a final response | none is left | – | – |
struct EarlyDialogs {
  private struct Early {
    var dialog: Dialog
    /// RSeq of the last reliable response.
    var lastResponse: UInt32?
    /// The last session description of the peer, for a 2xx that repeats none.
    var sdp: String?
  }

  private var byTag: [String: Early] = [:]

  var tags: [String] { byTag.keys.sorted() }
  func has(_ tag: String) -> Bool { byTag[tag] != nil }
  func sdp(_ tag: String) -> String? { byTag[tag]?.sdp }
  /// The CSeq of both sides so far.
  func sequences(_ tag: String) -> (local: UInt32, remote: UInt32?)? {
    byTag[tag].map { ($0.dialog.localSequence, $0.dialog.remoteSequence) }
  }

  /// False: the response is ignored, because the INVITE has forked too often.
  mutating func open(_ tag: String, _ dialog: Dialog) -> Bool {
    guard byTag[tag] == nil else { return true }
    guard byTag.count < Limits.forks else { return false }
    byTag[tag] = Early(dialog: dialog)
    return true
  }

  /// A reliable response. False: it is repeated or out of order.
  mutating func acknowledge(_ tag: String, response number: UInt32) -> Bool {
    guard let early = byTag[tag], early.lastResponse.map({ number == $0 &+ 1 }) ?? true else { return false }
    byTag[tag]?.lastResponse = number
    return true
  }

  mutating func described(_ tag: String, as sdp: String) { byTag[tag]?.sdp = sdp }

  /// A request of the peer. False: it is out of order.
  mutating func received(_ tag: String, sequence: UInt32) -> Bool {
    if let last = byTag[tag]?.dialog.remoteSequence, sequence <= last { return false }
    byTag[tag]?.dialog.remoteSequence = sequence
    return true
  }

  /// The dialog of our next request.
  mutating func nextRequest(_ tag: String) -> Dialog? {
    byTag[tag]?.dialog.localSequence += 1
    return byTag[tag]?.dialog
  }

  mutating func removeAll() { byTag = [:] }
}
