import CallModel
import Testing

@testable import Cluster

@Suite struct StateReviewTests {
  /// Ends each section after one page, and gives the names of the sections.
  private func sections(_ review: inout StateReview) -> [String] {
    var out: [String] = []
    while let position = review.position, out.count < 9 {
      out.append(String("\(position)".prefix { $0 != "(" }))
      if review.advance(to: nil) { out.append("end") }
    }
    return out
  }

  @Test func `a review goes through all sections, calls first, and ends once`() {
    var review = StateReview()
    #expect(review.position == nil && !review.advance(to: .shares) && review.position == nil)
    review.begin()
    #expect(sections(&review) == ["calls", "unstarted", "shares", "recent", "devices", "users", "end"])
    #expect(!review.advance(to: nil) && review.position == nil)
  }

  @Test func `a section goes on from the last element that was seen; a further connection begins again`() {
    var review = StateReview()
    review.begin()
    #expect(!review.advance(to: .calls(after: callID(3))) && review.position == .calls(after: callID(3)))
    _ = review.advance(to: nil)
    review.begin()
    #expect(review.position == .calls(after: nil))
  }

  @Test func `a lease that begins reviews calls without entry only, unless a review goes on, which begins again`() {
    var review = StateReview()
    review.beginUnstarted()
    review.beginUnstarted()
    #expect(sections(&review) == ["unstarted"])
    review.begin()
    for _ in 0..<3 { _ = review.advance(to: nil) }
    review.beginUnstarted()
    #expect(sections(&review).first == "calls")
    review.beginUnstarted()
    review.begin()
    #expect(sections(&review).last == "end")
  }
}
