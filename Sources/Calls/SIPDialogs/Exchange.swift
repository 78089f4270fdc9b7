import TrunklineBytes
import TrunklineSIP

/// The content of a request inside a dialog besides the dialog's headers; kept with its transaction, so that it can be sent
/// again with credentials.
struct RequestContent {
  var fields: [(HeaderName, String)] = []
  var body: String?
  var contentType = "application/sdp"
  /// Contact, Allow and Supported: of requests that refresh the target.
  var refreshesTarget = false
  /// The tag of the early dialog that it belongs to; nil: the leg's own dialog.
  var fork: String?
}
