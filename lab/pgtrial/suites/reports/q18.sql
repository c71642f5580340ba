-- The hundred dearest purchases of more than 270 pieces, and their buyers.
select b.buyer, b.buyer_id, p.purchase_id, p.purchased_on, p.total, sum(l.quantity) as pieces
from buyers b
join purchases p on p.buyer_id = b.buyer_id
join lines l on l.purchase_id = p.purchase_id
where p.purchase_id in (
    select purchase_id
    from lines
    group by purchase_id
    having sum(quantity) > 270
)
group by b.buyer, b.buyer_id, p.purchase_id, p.purchased_on, p.total
order by p.total desc, p.purchased_on, p.purchase_id
limit 100;
