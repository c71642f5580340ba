-- Which parts have a stock in a nation that is worth more than three times the mean?
select o.part_id, sum(o.cost * o.available) as worth
from offers o
join suppliers s on s.supplier_id = o.supplier_id
join nations n on n.nation_id = s.nation_id
where n.nation = 'Norvale'
group by o.part_id
having sum(o.cost * o.available) > (
    select 3 * avg(o.cost * o.available)
    from offers o
    join suppliers s on s.supplier_id = o.supplier_id
    join nations n on n.nation_id = s.nation_id
    where n.nation = 'Norvale'
)
order by worth desc, o.part_id;
