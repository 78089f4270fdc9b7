/// Status line and fields of a response.
public struct ResponseHead: Sendable {
  public var status: Int
  public var fields: [RequestHead.Field]

  public init(_ status: Int, _ fields: [RequestHead.Field] = []) { (self.status, self.fields) = (status, fields) }

  /// On the wire, with the empty line. Control characters in values become spaces, so that no value can begin a line.
  public var encoded: [UInt8] {
    var out = Array("HTTP/1.1 \(status) \(Self.reason(status))\r\n".utf8)
    for field in fields {
      out += Array(field.name.utf8) + [58, 32]
      out += field.value.utf8.map { $0 < 32 || $0 == 127 ? 32 : $0 }
      out += [13, 10]
    }
    return out + [13, 10]
  }

  /// The reason phrases of RFC 9110 §15 for the statuses that this project sends.
  public static func reason(_ status: Int) -> String {
    switch status {
    case 100: "Continue"
    case 101: "Switching Protocols"
    case 200: "OK"
    case 201: "Created"
    case 202: "Accepted"
    case 204: "No Content"
    case 304: "Not Modified"
    case 307: "Temporary Redirect"
    case 400: "Bad Request"
    case 401: "Unauthorized"
    case 403: "Forbidden"
    case 404: "Not Found"
    case 405: "Method Not Allowed"
    case 408: "Request Timeout"
    case 409: "Conflict"
    case 410: "Gone"
    case 412: "Precondition Failed"
    case 413: "Content Too Large"
    case 417: "Expectation Failed"
    case 422: "Unprocessable Content"
    case 426: "Upgrade Required"
    case 429: "Too Many Requests"
    case 431: "Request Header Fields Too Large"
    case 500: "Internal Server Error"
    case 501: "Not Implemented"
    case 503: "Service Unavailable"
    case 504: "Gateway Timeout"
    case 505: "HTTP Version Not Supported"
    default: status < 300 ? "OK" : status < 500 ? "Refused" : "Failed"
    }
  }
}
