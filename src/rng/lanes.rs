//! Philox for many consecutive items at once. (Placeholder: one at a time.)
