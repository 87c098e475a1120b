"""What a person looks at first: how runs and tasks stand, what waits for someone, and what it costs. It only reads.

It joins the tables of several domains by separate SQL: an overview is made of all of them, and none of them knows it.
"""
