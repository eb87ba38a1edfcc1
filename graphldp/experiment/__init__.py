"""One cell of a table, in memory: what people are asked, what the server makes of it, search, choice, final runs.

`graphldp.run` is the whole of it in one call. Nothing here knows of files. Importing the package imports none of its
modules, since a grid is read without torch: `options` has the settings, `plan` what a cell tries, `cell` the training,
`running` one method between its floor and its ceiling.
"""
