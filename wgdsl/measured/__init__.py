"""Times of schedules on a card, and the order of schedules that follows from them."""
