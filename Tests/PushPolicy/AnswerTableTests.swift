import HTTP
import Testing

@testable import PushPolicy

@Suite struct AnswerTableTests {
  @Test(arguments: PushService.allCases) func `each service stands in the table under its own name and kind`(service: PushService)
  {
    #expect(service.provider.service == service)
    #expect(PushService(kind: service.provider.registrationKind) == service)
    #expect(PushService(kind: "pigeon") == nil)
  }

  @Test(
    arguments: [
      (200, nil, PushVerdict.accepted),
      (400, "BadDeviceToken", .tokenMismatch(reason: "BadDeviceToken")),
      (400, "DeviceTokenNotForTopic", .tokenMismatch(reason: "DeviceTokenNotForTopic")),
      (400, "IdleTimeout", .retry(.otherConnection, reason: "IdleTimeout")),
      (400, "BadTopic", .refused(reason: "BadTopic", isFault: true)),
      (400, "PayloadEmpty", .refused(reason: "PayloadEmpty", isFault: true)),
      (403, "ExpiredProviderToken", .retry(.newToken, reason: "ExpiredProviderToken")),
      (403, "InvalidProviderToken", .refused(reason: "InvalidProviderToken", isFault: true)),
      (403, "BadEnvironmentKeyInToken", .refused(reason: "BadEnvironmentKeyInToken", isFault: true)),
      (404, "BadPath", .refused(reason: "BadPath", isFault: true)),
      (405, "MethodNotAllowed", .refused(reason: "MethodNotAllowed", isFault: true)),
      (413, "PayloadTooLarge", .retry(.withoutCaller, reason: "PayloadTooLarge")),
      (429, "TooManyRequests", .refused(reason: "TooManyRequests", isFault: false)),
      (429, "TooManyProviderTokenUpdates", .refused(reason: "TooManyProviderTokenUpdates", isFault: true, freezesToken: true)),
      (500, "InternalServerError", .retry(.otherConnection, reason: "InternalServerError")),
      (503, "Shutdown", .retry(.otherConnection, reason: "Shutdown")),
    ] as [(Int, String?, PushVerdict)])
  func `TOK-4: each status and reason of APNs has its verdict`(_ status: Int, _ reason: String?, _ verdict: PushVerdict) {
    let body = reason.map { #"{"reason":"\#($0)"}"# } ?? ""
    #expect(APNsProvider.verdict(HTTPClientResponse(status: status, body: Array(body.utf8))) == verdict)
  }

  @Test func `TOK-4: a 410 tells since when the token is no more`() {
    let answer = HTTPClientResponse(status: 410, body: Array(#"{"reason":"Unregistered","timestamp":1700000000123}"#.utf8))
    #expect(APNsProvider.verdict(answer) == .unregistered(before: 1_700_000_000_123, reason: "Unregistered"))
  }

  @Test(arguments: ["", "<html>", "[]", #"{"reason":7}"#, #"{"reason":"\u0000"#])
  func `an answer that is no JSON is judged by its status`(_ body: String) {
    #expect(
      APNsProvider.verdict(HTTPClientResponse(status: 503, body: Array(body.utf8)))
        == .retry(.otherConnection, reason: "status 503"))
    #expect(
      APNsProvider.verdict(HTTPClientResponse(status: 403, body: Array(body.utf8)))
        == .refused(reason: "status 403", isFault: true))
    #expect(
      FCMProvider.verdict(HTTPClientResponse(status: 400, body: Array(body.utf8)))
        == .refused(reason: "status 400", isFault: true))
  }

  @Test(
    arguments: [
      (200, "", nil, PushVerdict.accepted),
      (
        404, #"{"error":{"status":"NOT_FOUND","details":[{"errorCode":"UNREGISTERED"}]}}"#, nil,
        .unregistered(before: nil, reason: "UNREGISTERED")
      ),
      (400, #"{"error":{"status":"INVALID_ARGUMENT"}}"#, nil, .refused(reason: "INVALID_ARGUMENT", isFault: true)),
      (403, #"{"error":{"details":[{},{"errorCode":"SENDER_ID_MISMATCH"}]}}"#, nil, .tokenMismatch(reason: "SENDER_ID_MISMATCH")),
      (401, "", nil, .retry(.newToken, reason: "status 401")),
      (429, #"{"error":{"details":[{"errorCode":"QUOTA_EXCEEDED"}]}}"#, 3, .retry(.after(seconds: 3), reason: "QUOTA_EXCEEDED")),
      (503, "", 2, .retry(.after(seconds: 2), reason: "status 503")),
    ] as [(Int, String, Int?, PushVerdict)])
  func `each status and error code of FCM has its verdict`(_ status: Int, _ body: String, _ after: Int?, _ verdict: PushVerdict) {
    #expect(FCMProvider.verdict(HTTPClientResponse(status: status, retryAfter: after, body: Array(body.utf8))) == verdict)
  }

  @Test(
    arguments: [
      (201, PushVerdict.accepted), (410, .unregistered(before: nil, reason: "status 410")),
      (404, .unregistered(before: nil, reason: "status 404")),
      (413, .retry(.withoutCaller, reason: "status 413")), (429, .retry(.after(seconds: 1), reason: "status 429")),
      (403, .refused(reason: "status 403", isFault: true)),
    ] as [(Int, PushVerdict)])
  func `each status of a browser's push service has its verdict`(_ status: Int, _ verdict: PushVerdict) {
    #expect(WebPushProvider.verdict(HTTPClientResponse(status: status)) == verdict)
  }
}
